#include "engine/memory/pool.h"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>

#include "tests/memory/ends_with_bug.h"
#include "tests/memory/heap_source.h"

namespace redecode {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Fixture {
  HeapSource source;
  Pool pool{source};

  Allocation get(uint64_t size_bytes, StreamId stream = 0, PoolId id = kOrdinaryPool) {
    Allocation a;
    REQUIRE(pool.allocate(id, stream, size_bytes, a) == AllocateResult::ok);
    return a;
  }
};

TEST_CASE("sizes are rounded up to 512 bytes") {
  CHECK(round_block_bytes(1) == 512);
  CHECK(round_block_bytes(512) == 512);
  CHECK(round_block_bytes(513) == 1024);
  CHECK(round_block_bytes(kMiB) == kMiB);
  CHECK(round_block_bytes(kMiB + 1) == kMiB + 512);
  Fixture f;
  CHECK(f.get(1).place == Placement{0, 0, 512});
  CHECK(f.get(1000).place == Placement{0, 512, 1024});
  CHECK(f.get(512).place == Placement{0, 1536, 512});
}

TEST_CASE("segments are 2 MiB, 20 MiB, or of the request's own size in steps of 2 MiB") {
  Fixture f;
  const auto segment_bytes = [&](uint64_t size_bytes) {
    const uint64_t before = f.pool.stats().segment_bytes;
    f.get(size_bytes);
    return f.pool.stats().segment_bytes - before;
  };
  CHECK(segment_bytes(kMiB) == 2 * kMiB);
  CHECK(segment_bytes(kMiB + 1) == 20 * kMiB);
  CHECK(segment_bytes(30 * kMiB) == 30 * kMiB);
  CHECK(segment_bytes(30 * kMiB + 1) == 32 * kMiB);
  CHECK(segment_bytes(21 * kMiB) == 22 * kMiB);
  Fixture exactly_ten;
  exactly_ten.get(10 * kMiB);
  CHECK(exactly_ten.pool.stats().segment_bytes == 10 * kMiB);
  Fixture g;
  g.get(10 * kMiB - 512);
  CHECK(g.pool.stats().segment_bytes == 20 * kMiB);
  g.get(10 * kMiB + 1, 1);  // another stream: nothing free there
  CHECK(g.pool.stats().segment_bytes == 20 * kMiB + 12 * kMiB);
}

TEST_CASE("best fit takes the smallest free block that is large enough") {
  Fixture f;
  const Allocation a = f.get(4 * kKiB);
  f.get(512);
  const Allocation b = f.get(2 * kKiB);
  f.get(512);
  const Allocation c = f.get(3 * kKiB);
  f.get(512);
  f.pool.free(a.block);
  f.pool.free(b.block);
  f.pool.free(c.block);
  CHECK(f.get(3 * kKiB).place == c.place);
  CHECK(f.get(2 * kKiB - 100).place == b.place);
  CHECK(f.get(3 * kKiB).place == Placement{0, 0, 3 * kKiB});  // cut from a
}

TEST_CASE("equal sizes: the lowest place wins, whatever was freed first") {
  Fixture f;
  std::vector<Allocation> all;
  for (int i = 0; i < 6; ++i) all.push_back(f.get(kKiB));
  f.pool.free(all[4].block);
  f.pool.free(all[0].block);
  f.pool.free(all[2].block);
  CHECK(f.get(kKiB).place == all[0].place);
  CHECK(f.get(kKiB).place == all[2].place);
  CHECK(f.get(kKiB).place == all[4].place);
}

TEST_CASE("equal sizes in two segments: the older segment wins although its address is higher") {
  HeapSource source(uint64_t{1} << 40, true);
  Pool pool(source);
  Allocation old_block, new_block, again;
  REQUIRE(pool.allocate(0, 0, 30 * kMiB, old_block) == AllocateResult::ok);
  REQUIRE(pool.allocate(0, 0, 30 * kMiB, new_block) == AllocateResult::ok);
  REQUIRE(new_block.address < old_block.address);
  pool.free(new_block.block);
  pool.free(old_block.block);
  REQUIRE(pool.allocate(0, 0, 30 * kMiB, again) == AllocateResult::ok);
  CHECK(again.place == old_block.place);
  CHECK(again.address == old_block.address);
}

TEST_CASE("a small block is split when at least 512 bytes remain") {
  Fixture f;
  const Allocation a = f.get(kKiB);
  f.get(512);
  f.pool.free(a.block);
  const Allocation whole = f.get(kKiB - 1);
  CHECK(whole.place.size_bytes == kKiB);
  f.pool.free(whole.block);
  CHECK(f.get(512).place == Placement{0, 0, 512});
  CHECK(f.get(512).place == Placement{0, 512, 512});
}

TEST_CASE("a large block is split only when more than 1 MiB remains") {
  for (const uint64_t rest : {kMiB - 512, kMiB, kMiB + 512}) {
    Fixture f;
    const uint64_t want = 20 * kMiB - rest;
    // A request below 10 MiB opens the 20 MiB segment, then the larger one is carved from it.
    f.pool.free(f.get(2 * kMiB).block);
    const Allocation a = f.get(want);
    CHECK(a.place.size_bytes == (rest > kMiB ? want : 20 * kMiB));
    CHECK(f.pool.stats().segments == 1);
  }
}

TEST_CASE("free neighbours merge on both sides") {
  Fixture f;
  const Allocation a = f.get(kKiB), b = f.get(kKiB), c = f.get(kKiB);
  f.get(kKiB);
  f.pool.free(a.block);
  f.pool.free(c.block);
  CHECK(f.pool.stats().merges == 0);
  f.pool.free(b.block);
  CHECK(f.pool.stats().merges == 2);
  CHECK(f.get(3 * kKiB).place == Placement{0, 0, 3 * kKiB});
}

TEST_CASE("all freed: the segment is one free block again") {
  Fixture f;
  std::vector<Allocation> all;
  for (int i = 0; i < 8; ++i) all.push_back(f.get(kKiB * static_cast<uint64_t>(i + 1)));
  for (const int i : {3, 0, 7, 1, 5, 2, 6, 4}) f.pool.free(all[static_cast<size_t>(i)].block);
  CHECK(f.pool.dump() == "pool 0 segment 0 +0 2097152 B stream 0 free\n");
  CHECK(f.pool.stats().live_bytes == 0);
}

TEST_CASE("streams never share blocks") {
  Fixture f;
  const Allocation a = f.get(kKiB, 0);
  f.pool.free(a.block);
  const Allocation b = f.get(kKiB, 1);
  CHECK(b.place.segment == 1);
  f.pool.free(b.block);
  CHECK(f.get(kKiB, 0).place == a.place);
  CHECK(f.get(kKiB, 1).place == b.place);
  CHECK(f.pool.stats().segments == 2);
}

TEST_CASE("small and large never share segments") {
  Fixture f;
  f.pool.free(f.get(5 * kMiB).block);
  CHECK(f.get(kMiB).place.segment == 1);
  CHECK(f.get(kMiB).place.segment == 1);
  CHECK(f.get(kMiB + 1).place.segment == 0);
}

TEST_CASE("a free is host-time: the next allocation of the stream gets the block") {
  Fixture f;
  const Allocation a = f.get(kKiB, 2);
  CHECK(f.pool.free(a.block));
  CHECK_FALSE(f.pool.live(a.block));
  const Allocation b = f.get(kKiB, 2);
  CHECK(b.address == a.address);
  CHECK(b.generation == a.generation + 1);
}

TEST_CASE("record_stream holds a freed block until its streams have drained since") {
  Fixture f;
  const Allocation a = f.get(kKiB, 0);
  f.pool.record_stream(a.block, 1);
  f.pool.record_stream(a.block, 3);
  f.pool.reclaim(0xffffffffu);  // drained before the free: says nothing
  CHECK_FALSE(f.pool.free(a.block));
  CHECK_FALSE(f.pool.live(a.block));
  CHECK(f.pool.stats().deferred_blocks == 1);
  CHECK(f.pool.stats().live_blocks == 0);
  CHECK(f.get(kKiB, 0).place != a.place);
  f.pool.reclaim(1u << 1);
  CHECK(f.pool.stats().deferred_blocks == 1);
  f.pool.reclaim(1u << 3);
  CHECK(f.pool.stats().deferred_blocks == 0);
  CHECK(f.get(kKiB, 0).place == a.place);
}

TEST_CASE("recorded uses end with the block: the next owner's free is immediate") {
  Fixture f;
  const Allocation a = f.get(kKiB, 0);
  f.pool.record_stream(a.block, 1);
  f.pool.free(a.block);
  f.pool.reclaim(1u << 1);
  const Allocation b = f.get(kKiB, 0);
  REQUIRE(b.place == a.place);
  CHECK(f.pool.free(b.block));
}

TEST_CASE("record_stream of a block's own stream changes nothing") {
  Fixture f;
  const Allocation a = f.get(kKiB, 2);
  f.pool.record_stream(a.block, 2);
  CHECK(f.pool.free(a.block));
}

TEST_CASE("a deferred block does not merge") {
  Fixture f;
  const Allocation a = f.get(kKiB), b = f.get(kKiB), c = f.get(kKiB);
  f.pool.record_stream(b.block, 1);
  f.pool.free(b.block);
  f.pool.free(a.block);
  f.pool.free(c.block);
  CHECK(f.get(kKiB).place == a.place);
  CHECK(f.get(kKiB).place == c.place);
}

TEST_CASE("in a capture record_stream defers until the capture ends, whatever drains") {
  Fixture f;
  const PoolId graphs = f.pool.make_private_pool();
  f.pool.begin_capture();
  CHECK(f.pool.capturing());
  const Allocation a = f.get(kKiB, 0, graphs);
  f.pool.record_stream(a.block, 1);
  CHECK_FALSE(f.pool.free(a.block));
  f.pool.reclaim(0xffffffffu);
  CHECK(f.get(kKiB, 0, graphs).place != a.place);
  f.pool.end_capture();
  CHECK_FALSE(f.pool.capturing());
  CHECK(f.pool.stats().deferred_blocks == 0);
  CHECK(f.get(kKiB, 0, graphs).place == a.place);
}

TEST_CASE("in a capture an unrecorded free is immediate: the rule that makes races") {
  Fixture f;
  const PoolId graphs = f.pool.make_private_pool();
  f.pool.begin_capture();
  const Allocation a = f.get(kKiB, 0, graphs);
  CHECK(f.pool.free(a.block));
  CHECK(f.get(kKiB, 0, graphs).place == a.place);
}

TEST_CASE("a capture does not end the wait for uses from outside it") {
  Fixture f;
  const Allocation freed_before = f.get(kKiB), freed_inside = f.get(kKiB);
  f.pool.record_stream(freed_before.block, 1);
  f.pool.record_stream(freed_inside.block, 1);
  f.pool.free(freed_before.block);
  f.pool.begin_capture();
  f.pool.free(freed_inside.block);
  f.pool.end_capture();
  CHECK(f.pool.stats().deferred_blocks == 2);
  f.pool.reclaim(1u << 1);
  CHECK(f.pool.stats().deferred_blocks == 0);
}

TEST_CASE("uses inside a capture end with it, those of the same block from outside stay") {
  Fixture f;
  const Allocation a = f.get(kKiB);
  f.pool.record_stream(a.block, 1);
  f.pool.begin_capture();
  f.pool.record_stream(a.block, 2);
  f.pool.free(a.block);
  f.pool.end_capture();
  CHECK(f.pool.stats().deferred_blocks == 1);
  f.pool.reclaim(1u << 1);
  CHECK(f.pool.stats().deferred_blocks == 0);
}

TEST_CASE("a use recorded in a capture still defers a free after it") {
  Fixture f;
  const Allocation a = f.get(kKiB);
  f.pool.begin_capture();
  f.pool.record_stream(a.block, 1);
  f.pool.end_capture();
  CHECK_FALSE(f.pool.free(a.block));
  f.pool.reclaim(1u << 1);
  CHECK(f.pool.stats().deferred_blocks == 0);
}

TEST_CASE("private pools share nothing with the ordinary pool or each other") {
  Fixture f;
  const PoolId one = f.pool.make_private_pool(), two = f.pool.make_private_pool();
  CHECK(one == 1);
  CHECK(two == 2);
  const Allocation a = f.get(kKiB, 0, one);
  f.pool.free(a.block);
  CHECK(f.get(kKiB, 0, kOrdinaryPool).place.segment == 1);
  CHECK(f.get(kKiB, 0, two).place.segment == 2);
  CHECK(f.get(kKiB, 0, one).place == a.place);
}

TEST_CASE("buckets that share a private pool, largest first, need no new segment") {
  const auto capture = [](Fixture& f, PoolId graphs, uint64_t rows) {
    f.pool.begin_capture();
    const Allocation hidden = f.get(rows * 96 * kKiB, 0, graphs);
    const Allocation logits = f.get(rows * 500 * kKiB, 0, graphs);
    f.pool.free(hidden.block);
    const Allocation out = f.get(rows * 64 * kKiB, 0, graphs);
    f.pool.free(logits.block);
    f.pool.free(out.block);
    f.pool.end_capture();
  };
  Fixture largest_first, smallest_first;
  const PoolId a = largest_first.pool.make_private_pool();
  capture(largest_first, a, 64);
  const uint64_t segments = largest_first.pool.stats().segments;
  capture(largest_first, a, 48);
  CHECK(largest_first.pool.stats().segments == segments);
  const PoolId b = smallest_first.pool.make_private_pool();
  capture(smallest_first, b, 48);
  capture(smallest_first, b, 64);
  CHECK(smallest_first.pool.stats().segment_bytes > largest_first.pool.stats().segment_bytes);
}

TEST_CASE("exhaustion by the source or the limit changes nothing") {
  HeapSource source;
  Pool pool(source, 22 * kMiB);
  Allocation a, b, untouched;
  REQUIRE(pool.allocate(0, 0, kMiB, a) == AllocateResult::ok);
  REQUIRE(pool.allocate(0, 0, 5 * kMiB, b) == AllocateResult::ok);
  const Digest before = pool.layout_digest();
  const std::string text = pool.dump();
  CHECK(pool.allocate(0, 0, 30 * kMiB, untouched) == AllocateResult::exhausted);
  CHECK(pool.allocate(0, 1, 1, untouched) == AllocateResult::exhausted);
  CHECK(pool.allocate(0, 0, UINT64_MAX, untouched) == AllocateResult::exhausted);
  CHECK(pool.layout_digest() == before);
  CHECK(pool.dump() == text);
  CHECK(untouched.block == kNoBlock);
  CHECK(pool.stats().allocations == 2);
  CHECK(pool.allocate(0, 0, 5 * kMiB, untouched) ==
        AllocateResult::ok);  // what is there still serves
  source.refuse = true;
  const Digest full = pool.layout_digest();
  CHECK(pool.allocate(0, 2, 1, untouched) == AllocateResult::exhausted);
  CHECK(pool.layout_digest() == full);
}

TEST_CASE("limit_bytes is reached exactly") {
  HeapSource source;
  Pool pool(source, 4 * kMiB);
  Allocation a;
  CHECK(pool.allocate(0, 0, kMiB, a) == AllocateResult::ok);
  CHECK(pool.allocate(0, 1, kMiB, a) == AllocateResult::ok);
  CHECK(pool.stats().segment_bytes == 4 * kMiB);
  CHECK(pool.allocate(0, 2, kMiB, a) == AllocateResult::exhausted);
}

TEST_CASE("generations never repeat") {
  Fixture f;
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const Allocation a = f.get(512, static_cast<StreamId>(i % 3));
    CHECK(seen.insert(a.generation).second);
    CHECK(f.pool.generation(a.block) == a.generation);
    f.pool.free(a.block);
    CHECK(f.pool.generation(a.block) == a.generation);
  }
}

TEST_CASE("segments go back to their source with the pool") {
  HeapSource source;
  {
    Pool pool(source);
    Allocation a;
    REQUIRE(pool.allocate(0, 0, kMiB, a) == AllocateResult::ok);
    REQUIRE(pool.allocate(0, 0, 9 * kMiB, a) == AllocateResult::ok);
    CHECK(source.held.size() == 2);
  }
  CHECK(source.held.empty());
  CHECK(source.released == 2);
}

TEST_CASE("dump says one line a block") {
  Fixture f;
  const PoolId graphs = f.pool.make_private_pool();
  f.get(700, 2, graphs);
  const Allocation d = f.get(512, 2, graphs);
  f.pool.record_stream(d.block, 0);
  f.pool.free(d.block);
  CHECK(f.pool.dump() ==
        "pool 1 segment 0 +0 1024 B stream 2 live gen 1\n"
        "pool 1 segment 0 +1024 512 B stream 2 deferred gen 2\n"
        "pool 1 segment 0 +1536 2095616 B stream 2 free\n");
}

TEST_CASE("misuse is a bug that ends the process") {
  Fixture f;
  const Allocation live = f.get(512), freed = f.get(512), held = f.get(512);
  f.get(512);
  f.pool.free(freed.block);
  f.pool.record_stream(held.block, 1);
  f.pool.free(held.block);
  CHECK(ends_with_bug([&] { f.pool.free(freed.block); }));
  CHECK(ends_with_bug([&] { f.pool.free(held.block); }));
  CHECK(ends_with_bug([&] { f.pool.free(12345); }));
  CHECK(ends_with_bug([&] { f.pool.free(kNoBlock); }));
  CHECK(ends_with_bug([&] { f.pool.record_stream(freed.block, 1); }));
  CHECK(ends_with_bug([&] { f.pool.end_capture(); }));
  CHECK(ends_with_bug([&] {
    f.pool.begin_capture();
    f.pool.begin_capture();
  }));
  Allocation out;
  CHECK(ends_with_bug([&] { f.pool.allocate(7, 0, 512, out); }));
  CHECK(ends_with_bug([&] { f.pool.allocate(0, 0, 0, out); }));
  CHECK(ends_with_bug([&] { f.pool.allocate(0, kMaxStreams, 512, out); }));
  CHECK_FALSE(ends_with_bug([&] { f.pool.free(live.block); }));
}

}  // namespace
}  // namespace redecode
