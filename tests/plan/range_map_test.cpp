#include "engine/plan/range_map.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "engine/plan/access_history.h"
#include "traces/random.h"

namespace redecode {
namespace {

std::string shown(RangeMap<int>& map, uint64_t begin, uint64_t end) {
  std::string out;
  map.visit(begin, end, [&](uint64_t from, uint64_t to, int& value) {
    out += std::to_string(from) + "-" + std::to_string(to) + "=" + std::to_string(value) + " ";
  });
  return out;
}

TEST_CASE("a range map splits at borders and fills gaps") {
  RangeMap<int> map;
  map.visit(10, 20, [](uint64_t, uint64_t, int& v) { v = 1; });
  map.visit(30, 40, [](uint64_t, uint64_t, int& v) { v = 2; });
  CHECK(shown(map, 15, 35) == "15-20=1 20-30=0 30-35=2 ");
  map.visit(12, 32, [](uint64_t, uint64_t, int& v) { v += 10; });
  CHECK(shown(map, 0, 50) == "0-10=0 10-12=1 12-20=11 20-30=10 30-32=12 32-40=2 40-50=0 ");
  CHECK(shown(map, 7, 7).empty());
}

TEST_CASE("equal neighbours merge, on both sides of a visit") {
  RangeMap<int> map;
  map.visit(0, 10, [](uint64_t, uint64_t, int& v) { v = 5; });
  map.visit(20, 30, [](uint64_t, uint64_t, int& v) { v = 5; });
  CHECK(map.size() == 2);
  map.visit(10, 20, [](uint64_t, uint64_t, int& v) { v = 5; });
  CHECK(map.size() == 1);
  CHECK(shown(map, 3, 4) == "3-4=5 ");
  CHECK(map.size() == 1);
}

TEST_CASE("random visits agree with an array of bytes") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomSequence random(seed);
    RangeMap<int> map;
    std::vector<int> bytes(64, 0);
    for (int i = 0; i < 100; ++i) {
      const uint64_t begin = random.below(64), end = begin + 1 + random.below(64 - begin);
      const int value = static_cast<int>(random.below(3));
      map.visit(begin, end, [&](uint64_t from, uint64_t to, int& v) {
        for (uint64_t at = from; at < to; ++at) REQUIRE(bytes[at] == v);
        v = value;
      });
      for (uint64_t at = begin; at < end; ++at) bytes[at] = value;
    }
    map.visit(0, 64, [](uint64_t, uint64_t, int& v) { v = 9; });
    CHECK(map.size() == 1);
  }
}

// A main stream's history as the checker keeps it.
struct OneStream {
  AccessHistory history;
  Clock clock, settled;
  std::vector<Conflict> conflicts;
  std::vector<BadContent> bad_contents;
  void touch(Access access, uint64_t begin, uint64_t end, OwnerId owner, uint32_t command) {
    Touch t;
    t.epoch = {0, ++clock.at[0]};
    t.owner = owner;
    t.command = command;
    t.access = access;
    history.touch(t, clock, settled, begin, end, {true, true}, conflicts, bad_contents);
  }
};

TEST_CASE("thousands of replays of the same layout keep as many ranges as one") {
  OneStream s;
  size_t after_first = 0;
  for (uint64_t step = 0; step < 3000; ++step) {
    for (uint64_t i = 0; i < 8; ++i) {
      const OwnerId owner = step * 8 + i;
      s.history.allocate(i * 100, i * 100 + 250);
      s.touch(Access::write, i * 100, i * 100 + 250, owner, 0);
      s.touch(Access::read, i * 100 + 10, i * 100 + 240, owner, 1);
    }
    if (step == 0) after_first = s.history.range_count();
    if (step % 10 == 9) s.settled = s.clock;
    REQUIRE(s.history.range_count() <= after_first);
  }
  CHECK(s.conflicts.empty());
  CHECK(s.bad_contents.empty());
}

TEST_CASE("token slots written one a step merge once the host has waited") {
  OneStream s;
  for (uint64_t step = 0; step < 2000; ++step) {
    s.touch(Access::write, step * 16, step * 16 + 16, kPersistentOwnerBit | 3, 0);
    s.touch(Access::read, 0, step * 16 + 16, kPersistentOwnerBit | 3, 1);
    s.settled = s.clock;
    REQUIRE(s.history.range_count() <= 3);
  }
}

}  // namespace
}  // namespace redecode
