// engine/memory/pool.h - Pool: the caching allocator, with the rules of the one that production
// uses.
//
// Backend-neutral host code over raw segments (rules: PyTorch c10/cuda/CUDACachingAllocator.cpp):
//  - sizes are rounded up to 512 B; requests up to 1 MiB are "small" and come from 2 MiB segments,
//    those below 10 MiB from 20 MiB segments, larger ones from a segment of their own (rounded to
//    2 MiB);
//  - free lists are per (pool, stream, small or large); best fit by (size, place); a small block is
//    split when at least 512 B remain, a large one when more than 1 MiB remains; free neighbours
//    merge;
//  - a free is host-time and immediate: the block may be handed out again on its own stream while
//    another stream still reads it. That is the rule that makes races, and it is kept on purpose;
//  - record_stream(block, s) defers a free: outside a capture until the device says the uses are
//    done (reclaim), during a capture until the capture ends;
//  - a private pool serves captures; all graphs may share one; its blocks never serve other pools.
// Nothing here depends on address values: segments are ordered by creation, so two processes that
// ask the same questions get the same layout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traces/digest.h"
#include "traces/program.h"

namespace redecode {

using PoolId = uint32_t;
inline constexpr PoolId kOrdinaryPool = 0;

inline constexpr uint64_t kMinBlockBytes = 512;
inline constexpr uint64_t kSmallLimitBytes = uint64_t{1} << 20;
inline constexpr uint64_t kSmallSegmentBytes = uint64_t{2} << 20;
inline constexpr uint64_t kLargeSegmentBytes = uint64_t{20} << 20;
inline constexpr uint64_t kOwnSegmentLimitBytes = uint64_t{10} << 20;
inline constexpr uint64_t kOwnSegmentRoundBytes = uint64_t{2} << 20;

// Where segments come from: device memory. Implemented by Device.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  // Returns null when no memory is left; alignment at least 512 B.
  virtual std::byte* reserve(uint64_t size_bytes) = 0;
  virtual void release(std::byte* base) = 0;
};

// A place in the pool, free of addresses: what two runs are compared by.
struct Placement {
  uint32_t segment = 0;  // ordinal of creation
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  // of the block, after rounding and splitting
  bool operator==(const Placement&) const = default;
};

using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = UINT32_MAX;

struct Allocation {
  BlockId block = kNoBlock;
  std::byte* address = nullptr;
  Placement place;
  uint64_t generation = 0;  // counts allocations of this pool object: never repeats
};

enum class AllocateResult : uint8_t { ok, exhausted };

struct PoolStats {
  uint64_t segments = 0, segment_bytes = 0;
  uint64_t live_blocks = 0, live_bytes = 0;
  uint64_t deferred_blocks = 0;
  uint64_t allocations = 0, frees = 0, splits = 0, merges = 0;
};

class Pool {
 public:
  // `source` must outlive the pool. `limit_bytes` caps the sum of segments (0: no cap).
  explicit Pool(SegmentSource& source, uint64_t limit_bytes = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A further private pool; ids count from 1.
  PoolId make_private_pool();

  // size_bytes > 0. On `exhausted` nothing has changed.
  AllocateResult allocate(PoolId pool, StreamId stream, uint64_t size_bytes, Allocation& out);

  // Host-time free. Freeing a block that is not live is a bug (CHECK). Returns false when the free
  // was deferred by an earlier record_stream.
  bool free(BlockId block);

  // The block is used on `stream`; no effect when that is its own stream.
  void record_stream(BlockId block, StreamId stream);

  // Between the two calls frees deferred by record_stream stay deferred. Captures do not nest.
  void begin_capture();
  void end_capture();
  bool capturing() const;

  // Outside a capture: every deferred free whose streams the device has drained becomes real.
  // `drained` is a bit mask of streams; drained since the free, counted over calls. During a
  // capture it has no effect: the device cannot be asked then.
  void reclaim(uint32_t drained_streams);

  bool live(BlockId block) const;
  uint64_t generation(BlockId block) const;  // of the newest allocation of this block
  PoolStats stats() const;

  // Digest of the whole layout: segments, blocks, states, free lists; equal layouts, equal digests.
  Digest layout_digest() const;
  // One line a block: "pool 1 segment 0 +512 1024 B stream 2 live gen 17".
  std::string dump() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

uint64_t round_block_bytes(uint64_t size_bytes);

}  // namespace redecode
