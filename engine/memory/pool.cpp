#include "engine/memory/pool.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint64_t kMaxRequestBytes = uint64_t{1} << 62;  // rounding cannot overflow below it

enum class BlockState : uint8_t {
  absent,  // merged away; its id waits for reuse
  free,
  live,
  deferred,  // freed by the host, held back by record_stream
};

std::string_view to_text(BlockState state) {
  switch (state) {
    case BlockState::absent:
      return "absent";
    case BlockState::free:
      return "free";
    case BlockState::live:
      return "live";
    case BlockState::deferred:
      return "deferred";
  }
  return "unknown";
}

struct Segment {
  std::byte* base = nullptr;
  uint64_t size_bytes = 0;
  PoolId pool = 0;
  StreamId stream = 0;
  bool small = false;
  BlockId first_block = kNoBlock;
};

struct Block {
  uint32_t segment = 0;
  uint64_t offset_bytes = 0, size_bytes = 0;
  BlockId before = kNoBlock, after = kNoBlock;  // neighbours in the segment
  BlockState state = BlockState::absent;
  bool freed_in_capture = false;  // deferred until the capture ends, if not longer
  uint32_t uses = 0;              // streams recorded outside captures since the allocation
  uint32_t capture_uses = 0;      // streams recorded inside a capture
  uint64_t generation = 0;
};

// Free blocks ascend by size, then by place: addresses take no part.
using FreeKey = std::tuple<uint64_t, uint32_t, uint64_t, BlockId>;  // size, segment, offset, block

// Ascending. A vector: lists are short, and nothing is allocated once they have grown.
class FreeList {
 public:
  using Iterator = std::vector<FreeKey>::iterator;
  Iterator end() { return keys_.end(); }
  Iterator lower_bound(const FreeKey& key) { return std::ranges::lower_bound(keys_, key); }
  void insert(const FreeKey& key) { keys_.insert(lower_bound(key), key); }
  void erase(Iterator at) { keys_.erase(at); }
  void erase(const FreeKey& key) {
    const Iterator at = lower_bound(key);
    REDECODE_CHECK(at != keys_.end() && *at == key);
    keys_.erase(at);
  }

 private:
  std::vector<FreeKey> keys_;
};
// By stream, then small or large.
using FreeLists = std::array<std::array<FreeList, 2>, kMaxStreams>;

uint64_t segment_bytes_for(uint64_t block_bytes) {
  if (block_bytes <= kSmallLimitBytes) return kSmallSegmentBytes;
  if (block_bytes < kOwnSegmentLimitBytes) return kLargeSegmentBytes;
  return (block_bytes + kOwnSegmentRoundBytes - 1) / kOwnSegmentRoundBytes * kOwnSegmentRoundBytes;
}

bool worth_splitting(bool small, uint64_t rest_bytes) {
  return small ? rest_bytes >= kMinBlockBytes : rest_bytes > kSmallLimitBytes;
}

}  // namespace

uint64_t round_block_bytes(uint64_t size_bytes) {
  REDECODE_CHECK_OP(size_bytes, <=, kMaxRequestBytes);
  if (size_bytes < kMinBlockBytes) return kMinBlockBytes;
  return (size_bytes + kMinBlockBytes - 1) / kMinBlockBytes * kMinBlockBytes;
}

struct Pool::Impl {
  SegmentSource& source;
  uint64_t limit_bytes;
  std::vector<Segment> segments;
  std::vector<Block> blocks;
  std::vector<BlockId> spare_ids;
  std::vector<FreeLists> pools;  // by PoolId
  std::set<BlockId> deferred;
  bool in_capture = false;
  PoolStats stats;

  Impl(SegmentSource& source_in, uint64_t limit_in) : source(source_in), limit_bytes(limit_in) {
    pools.emplace_back();
  }

  FreeList& list_of(const Block& b) {
    const Segment& s = segments[b.segment];
    return pools[s.pool][s.stream][s.small ? 0 : 1];
  }
  static FreeKey key_of(const Block& b, BlockId id) {
    return {b.size_bytes, b.segment, b.offset_bytes, id};
  }
  BlockId new_block();
  BlockId grow(PoolId pool, StreamId stream, uint64_t block_bytes);
  void split(BlockId id, uint64_t block_bytes);
  void absorb_after(BlockId id);
  void make_free(BlockId id);
  Block& checked_live(BlockId id);
};

BlockId Pool::Impl::new_block() {
  if (!spare_ids.empty()) {
    const BlockId id = spare_ids.back();
    spare_ids.pop_back();
    blocks[id] = {};
    return id;
  }
  REDECODE_CHECK_OP(blocks.size(), <, size_t{kNoBlock});
  blocks.emplace_back();
  return static_cast<BlockId>(blocks.size() - 1);
}

// A new segment as one free block, not in any list; kNoBlock when no memory is left.
BlockId Pool::Impl::grow(PoolId pool, StreamId stream, uint64_t block_bytes) {
  const uint64_t size_bytes = segment_bytes_for(block_bytes);
  if (limit_bytes != 0 &&
      (size_bytes > limit_bytes || stats.segment_bytes > limit_bytes - size_bytes))
    return kNoBlock;
  std::byte* base = source.reserve(size_bytes);
  if (base == nullptr) return kNoBlock;
  const BlockId id = new_block();
  Block& b = blocks[id];
  b.segment = static_cast<uint32_t>(segments.size());
  b.size_bytes = size_bytes;
  b.state = BlockState::free;
  segments.push_back({base, size_bytes, pool, stream, block_bytes <= kSmallLimitBytes, id});
  ++stats.segments;
  stats.segment_bytes += size_bytes;
  return id;
}

void Pool::Impl::split(BlockId id, uint64_t block_bytes) {
  const BlockId rest_id = new_block();
  Block& b = blocks[id];
  Block& rest = blocks[rest_id];
  rest.segment = b.segment;
  rest.offset_bytes = b.offset_bytes + block_bytes;
  rest.size_bytes = b.size_bytes - block_bytes;
  rest.state = BlockState::free;
  rest.before = id;
  rest.after = b.after;
  if (rest.after != kNoBlock) blocks[rest.after].before = rest_id;
  b.after = rest_id;
  b.size_bytes = block_bytes;
  list_of(rest).insert(key_of(rest, rest_id));
  ++stats.splits;
}

// Takes in the free neighbour behind `id`, which is in no list itself.
void Pool::Impl::absorb_after(BlockId id) {
  Block& b = blocks[id];
  const BlockId gone_id = b.after;
  Block& gone = blocks[gone_id];
  b.size_bytes += gone.size_bytes;
  b.after = gone.after;
  if (b.after != kNoBlock) blocks[b.after].before = id;
  gone = {};
  spare_ids.push_back(gone_id);
  ++stats.merges;
}

void Pool::Impl::make_free(BlockId id) {
  FreeList& list = list_of(blocks[id]);
  const auto is_free = [&](BlockId n) {
    return n != kNoBlock && blocks[n].state == BlockState::free;
  };
  blocks[id].state = BlockState::free;
  if (const BlockId after = blocks[id].after; is_free(after)) {
    list.erase(key_of(blocks[after], after));
    absorb_after(id);
  }
  if (const BlockId before = blocks[id].before; is_free(before)) {
    list.erase(key_of(blocks[before], before));
    absorb_after(before);
    id = before;
  }
  list.insert(key_of(blocks[id], id));
}

Block& Pool::Impl::checked_live(BlockId id) {
  REDECODE_CHECK_OP(id, <, blocks.size());
  REDECODE_CHECK(blocks[id].state == BlockState::live);
  return blocks[id];
}

Pool::Pool(SegmentSource& source, uint64_t limit_bytes)
    : impl_(std::make_unique<Impl>(source, limit_bytes)) {}

Pool::~Pool() {
  for (const Segment& s : impl_->segments) impl_->source.release(s.base);
}

PoolId Pool::make_private_pool() {
  impl_->pools.emplace_back();
  return static_cast<PoolId>(impl_->pools.size() - 1);
}

AllocateResult Pool::allocate(PoolId pool, StreamId stream, uint64_t size_bytes, Allocation& out) {
  Impl& p = *impl_;
  REDECODE_CHECK_OP(pool, <, p.pools.size());
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  REDECODE_CHECK_OP(size_bytes, >, 0u);
  if (size_bytes > kMaxRequestBytes) return AllocateResult::exhausted;
  const uint64_t block_bytes = round_block_bytes(size_bytes);
  const bool small = block_bytes <= kSmallLimitBytes;

  FreeList& list = p.pools[pool][stream][small ? 0 : 1];
  const auto fit = list.lower_bound(FreeKey{block_bytes, 0, 0, 0});
  BlockId id = kNoBlock;
  if (fit != list.end()) {
    id = std::get<3>(*fit);
    list.erase(fit);
  } else {
    id = p.grow(pool, stream, block_bytes);
    if (id == kNoBlock) return AllocateResult::exhausted;
  }
  if (worth_splitting(small, p.blocks[id].size_bytes - block_bytes)) p.split(id, block_bytes);

  Block& b = p.blocks[id];
  b.state = BlockState::live;
  b.generation = ++p.stats.allocations;
  ++p.stats.live_blocks;
  p.stats.live_bytes += b.size_bytes;
  out.block = id;
  out.address = p.segments[b.segment].base + b.offset_bytes;
  out.place = {b.segment, b.offset_bytes, b.size_bytes};
  out.generation = b.generation;
  return AllocateResult::ok;
}

bool Pool::free(BlockId block) {
  Impl& p = *impl_;
  Block& b = p.checked_live(block);
  ++p.stats.frees;
  --p.stats.live_blocks;
  p.stats.live_bytes -= b.size_bytes;
  if ((b.uses | b.capture_uses) == 0) {
    p.make_free(block);
    return true;
  }
  b.state = BlockState::deferred;
  b.freed_in_capture = p.in_capture;
  p.deferred.insert(block);
  return false;
}

void Pool::record_stream(BlockId block, StreamId stream) {
  Impl& p = *impl_;
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  Block& b = p.checked_live(block);
  if (p.segments[b.segment].stream == stream) return;
  (p.in_capture ? b.capture_uses : b.uses) |= uint32_t{1} << stream;
}

void Pool::begin_capture() {
  REDECODE_CHECK(!impl_->in_capture);
  impl_->in_capture = true;
}

void Pool::end_capture() {
  Impl& p = *impl_;
  REDECODE_CHECK(p.in_capture);
  p.in_capture = false;
  for (auto it = p.deferred.begin(); it != p.deferred.end();) {
    Block& b = p.blocks[*it];
    if (!std::exchange(b.freed_in_capture, false)) {
      ++it;
      continue;
    }
    // Uses inside the capture ran nothing; those from before it still wait for the device.
    b.capture_uses = 0;
    if (b.uses != 0) {
      ++it;
      continue;
    }
    p.make_free(*it);
    it = p.deferred.erase(it);
  }
}

bool Pool::capturing() const { return impl_->in_capture; }

void Pool::reclaim(uint32_t drained_streams) {
  Impl& p = *impl_;
  if (p.in_capture) return;
  for (auto it = p.deferred.begin(); it != p.deferred.end();) {
    Block& b = p.blocks[*it];
    b.uses &= ~drained_streams;
    b.capture_uses &= ~drained_streams;
    if ((b.uses | b.capture_uses) != 0) {
      ++it;
      continue;
    }
    p.make_free(*it);
    it = p.deferred.erase(it);
  }
}

bool Pool::live(BlockId block) const {
  return block < impl_->blocks.size() && impl_->blocks[block].state == BlockState::live;
}

uint64_t Pool::generation(BlockId block) const {
  REDECODE_CHECK_OP(block, <, impl_->blocks.size());
  return impl_->blocks[block].generation;
}

PoolStats Pool::stats() const {
  PoolStats stats = impl_->stats;
  stats.deferred_blocks = impl_->deferred.size();
  return stats;
}

Digest Pool::layout_digest() const {
  std::vector<uint64_t> words = {impl_->pools.size(), impl_->segments.size()};
  for (const Segment& s : impl_->segments) {
    words.insert(words.end(), {s.pool, s.stream, s.small, s.size_bytes});
    for (BlockId id = s.first_block; id != kNoBlock; id = impl_->blocks[id].after) {
      const Block& b = impl_->blocks[id];
      words.insert(words.end(), {b.offset_bytes, b.size_bytes, static_cast<uint64_t>(b.state)});
    }
  }
  return digest_span(std::span<const uint64_t>(words));
}

std::string Pool::dump() const {
  std::string out;
  for (const Segment& s : impl_->segments) {
    for (BlockId id = s.first_block; id != kNoBlock; id = impl_->blocks[id].after) {
      const Block& b = impl_->blocks[id];
      out += "pool " + std::to_string(s.pool) + " segment " + std::to_string(b.segment) + " +" +
             std::to_string(b.offset_bytes) + ' ' + std::to_string(b.size_bytes) + " B stream " +
             std::to_string(s.stream) + ' ';
      out += to_text(b.state);
      if (b.state != BlockState::free) out += " gen " + std::to_string(b.generation);
      out += '\n';
    }
  }
  return out;
}

}  // namespace redecode
