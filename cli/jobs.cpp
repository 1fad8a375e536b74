#include "cli/jobs.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace redecode {

void run_jobs(size_t count, int threads, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex guard;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (auto& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace redecode
