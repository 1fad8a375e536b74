// recorder/abi/departed.h - Departed: which requests have ended, told without locking or
// allocating.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace redecode {

// Numbers that were never covered are passed over. cover is for one thread at a time; the others
// may be called from any.
class Departed {
 public:
  ~Departed() {
    for (auto& segment : segments_) delete[] segment.load(std::memory_order_relaxed);
  }
  Departed() = default;
  Departed(const Departed&) = delete;
  Departed& operator=(const Departed&) = delete;

  void cover(uint32_t number) {
    auto& segment = segments_[number / kSegment];
    if (segment.load(std::memory_order_relaxed) == nullptr)
      segment.store(new std::atomic<uint8_t>[kSegment](), std::memory_order_release);
  }
  void set(uint32_t number) {
    if (auto* flag = flag_of(number)) flag->store(1, std::memory_order_release);
  }
  bool has(uint32_t number) const {
    const auto* flag = flag_of(number);
    return flag != nullptr && flag->load(std::memory_order_acquire) != 0;
  }

 private:
  static constexpr uint32_t kSegment = 1u << 20;
  std::atomic<uint8_t>* flag_of(uint32_t number) const {
    auto* segment = segments_[number / kSegment].load(std::memory_order_acquire);
    return segment == nullptr ? nullptr : segment + number % kSegment;
  }
  std::array<std::atomic<std::atomic<uint8_t>*>, (uint64_t{1} << 32) / kSegment> segments_{};
};

}  // namespace redecode
