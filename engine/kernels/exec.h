// engine/kernels/exec.h - Exec: how a kernel spreads its work; without effect on any bit of the
// result.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

namespace redecode {

// Instruction sets with bit-identical results. `best` is what this machine runs.
enum class Isa { plain, avx2, avx512 };
Isa best_isa();
bool isa_supported(Isa isa);
const char* isa_name(Isa isa);

class Exec {
 public:
  // threads >= 1, including the caller.
  explicit Exec(int threads = 1, Isa isa = best_isa());
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

  int threads() const { return threads_; }
  Isa isa() const { return isa_; }

  // Calls body(begin, end) over disjoint ranges that cover [0, count), each but the last a multiple
  // of `grain`. With one thread it is one direct call. Exceptions must not leave the body.
  void parallel(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body);

 private:
  struct Workers;
  int threads_;
  Isa isa_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace redecode
