// The pool against a naive model of its rules: lists of blocks, scanned from end to end.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <vector>

#include "engine/memory/pool.h"
#include "tests/memory/heap_source.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct ModelBlock {
  enum State { free, live, held } state = free;
  uint64_t offset = 0, size = 0;
  uint32_t outside = 0, inside = 0;  // recorded streams
  bool until_end = false;
};
struct ModelSegment {
  PoolId pool;
  StreamId stream;
  bool small;
  std::vector<ModelBlock> blocks;
};

struct Model {
  uint64_t limit = 0;
  uint64_t total = 0;
  bool capture = false;
  std::vector<ModelSegment> segments;

  static void cut(ModelSegment& s, size_t at, uint64_t size) {
    ModelBlock rest;
    rest.offset = s.blocks[at].offset + size;
    rest.size = s.blocks[at].size - size;
    s.blocks[at].size = size;
    s.blocks.insert(s.blocks.begin() + static_cast<std::ptrdiff_t>(at) + 1, rest);
  }
  std::optional<Placement> allocate(PoolId pool, StreamId stream, uint64_t bytes) {
    const uint64_t size = std::max<uint64_t>(512, (bytes + 511) / 512 * 512);
    const bool small = size <= kMiB;
    size_t best_segment = SIZE_MAX, best = 0;
    uint64_t best_size = UINT64_MAX;
    for (size_t i = 0; i < segments.size(); ++i) {
      const ModelSegment& s = segments[i];
      if (s.pool != pool || s.stream != stream || s.small != small) continue;
      for (size_t k = 0; k < s.blocks.size(); ++k) {
        const ModelBlock& b = s.blocks[k];
        if (b.state != ModelBlock::free || b.size < size || b.size >= best_size) continue;
        best_segment = i;
        best = k;
        best_size = b.size;
      }
    }
    if (best_segment == SIZE_MAX) {
      uint64_t segment = 2 * kMiB;
      if (!small)
        segment = size < 10 * kMiB ? 20 * kMiB : (size + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
      if (total + segment > limit) return std::nullopt;
      total += segment;
      segments.push_back(
          {pool, stream, small, {ModelBlock{ModelBlock::free, 0, segment, 0, 0, false}}});
      best_segment = segments.size() - 1;
      best = 0;
    }
    ModelSegment& s = segments[best_segment];
    const uint64_t rest = s.blocks[best].size - size;
    if (small ? rest >= 512 : rest > kMiB) cut(s, best, size);
    s.blocks[best].state = ModelBlock::live;
    return Placement{static_cast<uint32_t>(best_segment), s.blocks[best].offset,
                     s.blocks[best].size};
  }
  ModelBlock& at(const Placement& place) {
    for (ModelBlock& b : segments[place.segment].blocks)
      if (b.offset == place.offset_bytes) return b;
    FAIL("no such block");
    return segments[0].blocks[0];
  }
  void merge_all() {
    for (ModelSegment& s : segments) {
      for (size_t k = 0; k + 1 < s.blocks.size();) {
        if (s.blocks[k].state == ModelBlock::free && s.blocks[k + 1].state == ModelBlock::free) {
          s.blocks[k].size += s.blocks[k + 1].size;
          s.blocks.erase(s.blocks.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        } else {
          ++k;
        }
      }
    }
  }
  static void reset(ModelBlock& b) {
    b = ModelBlock{ModelBlock::free, b.offset, b.size, 0, 0, false};
  }
  bool free(const Placement& place) {
    ModelBlock& b = at(place);
    if ((b.outside | b.inside) != 0) {
      b.state = ModelBlock::held;
      b.until_end = capture;
      return false;
    }
    reset(b);
    merge_all();
    return true;
  }
  void record(const Placement& place, StreamId stream) {
    if (segments[place.segment].stream == stream) return;
    (capture ? at(place).inside : at(place).outside) |= 1u << stream;
  }
  void settle(uint32_t drained, bool ending) {
    for (ModelSegment& s : segments) {
      for (ModelBlock& b : s.blocks) {
        if (b.state != ModelBlock::held) continue;
        b.outside &= ~drained;
        b.inside &= ~drained;
        if (ending && b.until_end) b.inside = 0;
        if (ending && !b.until_end) continue;
        if (ending) b.until_end = false;
        if ((b.outside | b.inside) == 0) reset(b);
      }
    }
    merge_all();
  }
  std::string layout() const {
    std::string out;
    for (size_t i = 0; i < segments.size(); ++i)
      for (const ModelBlock& b : segments[i].blocks)
        out += "pool " + std::to_string(segments[i].pool) + " segment " + std::to_string(i) + " +" +
               std::to_string(b.offset) + ' ' + std::to_string(b.size) + " B stream " +
               std::to_string(segments[i].stream) +
               (b.state == ModelBlock::free   ? " free"
                : b.state == ModelBlock::live ? " live"
                                              : " deferred") +
               '\n';
    return out;
  }
};

std::string without_generations(std::string text) {
  for (size_t at; (at = text.find(" gen ")) != std::string::npos;)
    text.erase(at, text.find('\n', at) - at);
  return text;
}

uint64_t random_size(RandomSequence& random) {
  switch (random.below(10)) {
    case 0:
      return 1 + random.below(40 * kMiB);
    case 1:
    case 2:
      return 1 + random.below(4 * kMiB);
    default:
      return 1 + random.below(uint64_t{1} << (9 + random.below(11)));
  }
}

// One random operation on a pool and, when there is one, on its model; `live` are the live blocks.
struct Driver {
  Pool& pool;
  Model* model;
  RandomSequence random;
  std::vector<Allocation> live;

  void step() {
    const uint64_t what = random.below(100);
    if (what < 50 || live.empty()) {
      allocate();
    } else if (what < 85) {
      const size_t i = random.below(live.size());
      const bool now = pool.free(live[i].block);
      if (model) REQUIRE(now == model->free(live[i].place));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what < 93) {
      const Allocation& a = live[random.below(live.size())];
      const auto stream = static_cast<StreamId>(random.below(4));
      pool.record_stream(a.block, stream);
      if (model) model->record(a.place, stream);
    } else if (what < 96) {
      pool.capturing() ? pool.end_capture() : pool.begin_capture();
      if (model) {
        model->capture = !model->capture;
        if (!model->capture) model->settle(0, true);
      }
    } else {
      const auto drained = static_cast<uint32_t>(random.below(16));
      pool.reclaim(drained);
      if (model && !model->capture) model->settle(drained, false);
    }
  }
  void allocate() {
    const auto id = static_cast<PoolId>(random.below(3));
    const auto stream = static_cast<StreamId>(random.below(4));
    const uint64_t bytes = random_size(random);
    Allocation a;
    const bool ok = pool.allocate(id, stream, bytes, a) == AllocateResult::ok;
    if (model) {
      const auto expected = model->allocate(id, stream, bytes);
      REQUIRE(ok == expected.has_value());
      if (ok) REQUIRE(a.place == *expected);
    }
    if (ok) live.push_back(a);
  }
};

TEST_CASE("random operations give the model's places, answers and layout") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    HeapSource source;
    Pool pool(source, 600 * kMiB);
    pool.make_private_pool();
    pool.make_private_pool();
    Model model;
    model.limit = 600 * kMiB;
    Driver driver{pool, &model, RandomSequence(seed), {}};
    for (int i = 0; i < 600; ++i) {
      driver.step();
      if (i % 20 == 0) REQUIRE(without_generations(pool.dump()) == model.layout());
    }
    REQUIRE(pool.stats().segment_bytes == model.total);
    REQUIRE(pool.stats().live_blocks == driver.live.size());
  }
}

TEST_CASE("two pools over sources with other addresses keep equal layouts for 10,000 operations") {
  HeapSource up, down(uint64_t{1} << 44, true);
  Pool a(up), b(down);
  for (Pool* pool : {&a, &b}) {
    pool->make_private_pool();
    pool->make_private_pool();
  }
  Driver drive_a{a, nullptr, RandomSequence(7), {}}, drive_b{b, nullptr, RandomSequence(7), {}};
  for (int i = 0; i < 10'000; ++i) {
    drive_a.step();
    drive_b.step();
    if (i % 100 == 0) REQUIRE(a.layout_digest() == b.layout_digest());
  }
  CHECK(a.layout_digest() == b.layout_digest());
  CHECK(a.dump() == b.dump());
  CHECK(a.stats().splits > 100);
  CHECK(a.stats().merges > 100);
  const Digest same = a.layout_digest();
  Allocation extra;
  REQUIRE(a.allocate(0, 0, 512, extra) == AllocateResult::ok);
  CHECK(a.layout_digest() != same);
}

TEST_CASE("live blocks never overlap and stay inside their segments") {
  HeapSource source;
  Pool pool(source);
  pool.make_private_pool();
  pool.make_private_pool();
  Driver driver{pool, nullptr, RandomSequence(11), {}};
  for (int i = 0; i < 3000; ++i) {
    driver.step();
    if (i % 50 != 0) continue;
    auto live = driver.live;
    std::sort(live.begin(), live.end(),
              [](const Allocation& x, const Allocation& y) { return x.address < y.address; });
    for (size_t k = 0; k + 1 < live.size(); ++k)
      REQUIRE(live[k].address + live[k].place.size_bytes <= live[k + 1].address);
    for (const Allocation& a : live) {
      const auto it = std::prev(source.held.upper_bound(a.address));
      REQUIRE(a.address + a.place.size_bytes <= it->first + it->second);
    }
  }
}

}  // namespace
}  // namespace redecode
