// tests/memory/heap_source.h - segments for pool tests: counted, and never touched.
#pragma once
#include <map>

#include "engine/memory/pool.h"

namespace redecode {

// Hands out addresses of a made-up line; nothing may be stored there. `first` sets where it starts
// and `downwards` in which direction it grows, so that two sources differ in every address and
// their order.
class HeapSource final : public SegmentSource {
 public:
  explicit HeapSource(uint64_t first = uint64_t{1} << 40, bool downwards = false)
      : next_(first), downwards_(downwards) {}
  std::byte* reserve(uint64_t size_bytes) override {
    if (refuse) return nullptr;
    if (downwards_) next_ -= size_bytes;
    auto* base = reinterpret_cast<std::byte*>(next_);
    if (!downwards_) next_ += size_bytes;
    held[base] = size_bytes;
    return base;
  }
  void release(std::byte* base) override { released += held.erase(base); }

  std::map<std::byte*, uint64_t> held;
  uint64_t released = 0;
  bool refuse = false;

 private:
  uint64_t next_;
  bool downwards_;
};

}  // namespace redecode
