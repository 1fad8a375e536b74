#include "engine/kernels/exec.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "traces/check.h"

namespace redecode {

bool isa_supported(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (isa) {
    case Isa::plain:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  }
  return false;
#else
  return isa == Isa::plain;
#endif
}

Isa best_isa() {
  if (isa_supported(Isa::avx512)) return Isa::avx512;
  return isa_supported(Isa::avx2) ? Isa::avx2 : Isa::plain;
}

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::plain:
      return "plain";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

// One job at a time: `generation` announces it, `pending` counts the workers still in it. `busy`
// turns a nested or concurrent call into a direct one.
struct Exec::Workers {
  using Body = std::function<void(size_t, size_t)>;

  explicit Workers(int thread_count) : total(static_cast<size_t>(thread_count)) {
    for (size_t i = 1; i < total; ++i) threads.emplace_back([this, i] { loop(i); });
  }

  ~Workers() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void run(size_t item_count, size_t grain_items, const Body& job) {
    {
      std::lock_guard lock(mutex);
      count = item_count;
      grain = grain_items;
      body = &job;
      pending = total - 1;
      ++generation;
    }
    start.notify_all();
    part(0);
    std::unique_lock lock(mutex);
    done.wait(lock, [this] { return pending == 0; });
    body = nullptr;
  }

  void loop(size_t index) {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping) return;
        seen = generation;
      }
      part(index);
      std::lock_guard lock(mutex);
      if (--pending == 0) done.notify_one();
    }
  }

  void part(size_t index) const {
    const size_t grains = (count + grain - 1) / grain;
    const size_t begin = std::min(count, grains * index / total * grain);
    const size_t end = std::min(count, grains * (index + 1) / total * grain);
    if (begin < end) (*body)(begin, end);
  }

  const size_t total;
  std::atomic<bool> busy{false};
  std::mutex mutex;
  std::condition_variable start, done;
  uint64_t generation = 0;
  size_t pending = 0, count = 0, grain = 1;
  const Body* body = nullptr;
  bool stopping = false;
  std::vector<std::thread> threads;
};

Exec::Exec(int threads, Isa isa) : threads_(threads), isa_(isa) {
  REDECODE_CHECK_OP(threads, >=, 1);
  REDECODE_CHECK(isa_supported(isa));
  if (threads > 1) workers_ = std::make_unique<Workers>(threads);
}

Exec::~Exec() = default;

void Exec::parallel(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body) {
  if (count == 0) return;
  REDECODE_CHECK_OP(grain, >=, size_t{1});
  if (!workers_ || count <= grain || workers_->busy.exchange(true, std::memory_order_acquire)) {
    body(0, count);
    return;
  }
  workers_->run(count, grain, body);
  workers_->busy.store(false, std::memory_order_release);
}

}  // namespace redecode
