// recorder/spsc_ring.h - a bounded queue between one producer and one consumer thread, without
// locks.
//
// Slots are written and read in place and never destroyed, so that the capacity of the vectors
// inside them is used again: a steady stream of records allocates nothing. Neither side wakes the
// other (that would be a system call); each polls, and decides itself how to wait.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

namespace redecode {

template <class Slot>
class SpscRing {
 public:
  // Capacity is rounded up to a power of two.
  explicit SpscRing(uint32_t capacity) : slots_(std::bit_ceil(capacity < 2 ? 2 : capacity)) {}

  // Producer: the slot to fill next, or nullptr when full; commit hands it over.
  Slot* free_slot() {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - seen_tail_ == slots_.size()) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ == slots_.size()) return nullptr;
    }
    return &slots_[head & mask()];
  }
  // Producer: slots that can be filled now; there may be more a moment later.
  uint32_t free_slots() {
    seen_tail_ = tail_.load(std::memory_order_acquire);
    return capacity() - (head_.load(std::memory_order_relaxed) - seen_tail_);
  }
  void commit() {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Consumer: the oldest filled slot, or nullptr when empty; pop gives it back.
  Slot* filled_slot() {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == seen_head_) {
      seen_head_ = head_.load(std::memory_order_acquire);
      if (tail == seen_head_) return nullptr;
    }
    return &slots_[tail & mask()];
  }
  void pop() { tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  uint32_t capacity() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  uint32_t mask() const { return capacity() - 1; }

  std::vector<Slot> slots_;
  alignas(64) std::atomic<uint32_t> head_{0};  // slots ever committed, modulo 2^32
  uint32_t seen_tail_ = 0;                     // the producer's last look at tail_
  alignas(64) std::atomic<uint32_t> tail_{0};  // slots ever popped
  uint32_t seen_head_ = 0;                     // the consumer's last look at head_
};

}  // namespace redecode
