// Random small programs against brute force: the whole graph of edges, its transitive closure, and
// all pairs of commands byte by byte.
#include <bitset>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "engine/plan/hazards.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr uint32_t kStreams = 4, kEvents = 3, kPersistents = 2, kTransients = 3;
constexpr uint64_t kLineBytes = 24;
constexpr size_t kMaxNodes = 256, kNone = SIZE_MAX;

struct Sample {
  Program program;
  ExtentTable extents;
  Submission submission = Submission::eager;
  bool sync_all_after = false;
};

struct PairKey {
  StepIndex first_step, second_step;
  uint32_t first, second;
  auto operator<=>(const PairKey&) const = default;
};
using RaceBytes = std::map<PairKey, uint64_t>;

StreamId random_stream(RandomSequence& random, bool host) {
  const auto s = static_cast<StreamId>(random.below(kStreams + (host ? 1 : 0)));
  return s == kStreams ? kHost : s;
}

void add_regions(Sample& sample, Command& c, RandomSequence& random) {
  c.first_region = static_cast<uint32_t>(sample.program.regions.size());
  c.region_count = 1 + static_cast<uint32_t>(random.below(3));
  for (uint32_t i = 0; i < c.region_count; ++i) {
    Region region;
    region.buffer = random.below(2) == 0
                        ? BufferId::persistent(static_cast<uint32_t>(random.below(kPersistents)))
                        : BufferId::transient(static_cast<uint32_t>(random.below(kTransients)));
    const uint64_t size = sample.extents.of(region.buffer).size_bytes;
    region.offset_bytes = random.below(size);
    region.size_bytes = 1 + random.below(size - region.offset_bytes);
    constexpr Access kinds[] = {Access::read,   Access::read,    Access::write,
                                Access::update, Access::scratch, Access::none};
    region.access = kinds[random.below(6)];
    sample.program.regions.push_back(region);
  }
}

Sample random_sample(RandomSequence& random, const std::shared_ptr<const NameTable>& names,
                     const std::shared_ptr<const std::vector<PersistentBuffer>>& persistents) {
  Sample s;
  s.submission = random.below(2) == 0 ? Submission::eager : Submission::graph;
  s.sync_all_after = random.below(4) == 0;
  s.program.names = names;
  s.program.persistents = persistents;
  s.extents.persistents = {{0, 8, 0}, {4, 8, 0}};
  for (uint32_t i = 0; i < kTransients; ++i) {
    const uint64_t begin = 8 + random.below(10);
    s.extents.transients.push_back({begin, 1 + random.below(kLineBytes - begin), i + 1});
    s.program.transients.push_back({0, 0, 0, s.extents.transients.back().size_bytes});
  }
  const uint64_t count = 4 + random.below(18);
  for (uint64_t i = 0; i < count; ++i) {
    Command c;
    const uint64_t what = random.below(20);
    c.kind = what < 9    ? CommandKind::launch
             : what < 10 ? CommandKind::host
             : what < 14 ? CommandKind::record
             : what < 18 ? CommandKind::wait
             : what < 19 ? CommandKind::sync
                         : CommandKind::allocate;
    const bool host_too = c.kind == CommandKind::record || c.kind == CommandKind::wait;
    c.stream = c.kind == CommandKind::host ? kHost : random_stream(random, host_too && what == 13);
    c.event = static_cast<EventId>(random.below(kEvents));
    c.buffer = BufferId::transient(static_cast<uint32_t>(random.below(kTransients)));
    if (c.kind == CommandKind::launch || c.kind == CommandKind::host) add_regions(s, c, random);
    s.program.commands.push_back(c);
  }
  return s;
}

// The edges of README and header, written out node by node.
class BruteForce {
 public:
  void add(StepIndex step, const Sample& s) {
    const bool graph = s.submission == Submission::graph;
    std::vector<size_t> event(kEvents, kNone), node_of(kStreams, kNone);
    std::vector<size_t> nodes;
    size_t launch = kNone;
    for (uint32_t i = 0; i < s.program.commands.size(); ++i) {
      const Command& c = s.program.commands[i];
      if (c.kind == CommandKind::allocate) continue;
      const size_t n = new_node();
      if (c.kind == CommandKind::sync) {
        edge(host_, n);
        edge(last_[c.stream], n);
        if (graph && launch != kNone && c.stream == 0) {
          edge(launch, n);
          for (const size_t m : nodes) edge(m, n);
        }
        host_ = n;
        continue;
      }
      if (c.stream == kHost) {
        edge(host_, n);
        host_ = n;
      } else if (graph) {
        if (launch == kNone) {
          launch = new_node();
          edge(last_[0], launch);
          edge(host_, launch);
        }
        edge(launch, n);
        edge(node_of[c.stream], n);
        node_of[c.stream] = n;
        nodes.push_back(n);
      } else {
        edge(host_, n);
        edge(last_[c.stream], n);
        last_[c.stream] = n;
      }
      if (c.kind == CommandKind::record) event[c.event] = n;
      if (c.kind == CommandKind::wait) edge(event[c.event], n);
      if (c.kind == CommandKind::launch || c.kind == CommandKind::host) keep(step, i, n, s);
    }
    if (launch != kNone) {
      const size_t end = new_node();
      edge(launch, end);
      for (const size_t m : nodes) edge(m, end);
      last_[0] = end;
    }
  }
  void sync_all() {
    const size_t n = new_node();
    edge(host_, n);
    for (const size_t m : last_) edge(m, n);
    host_ = n;
  }

  // Without `latest_only` all racing pairs; with it those that no later touch of the byte stands
  // for.
  RaceBytes races(bool latest_only) {
    close();
    RaceBytes out;
    for (size_t b = 0; b < acts_.size(); ++b)
      for (size_t a = 0; a < b; ++a)
        for (uint64_t at = 0; at < kLineBytes; ++at) {
          if (!conflict(acts_[a].at[at], acts_[b].at[at])) continue;
          if (before_[acts_[b].node][acts_[a].node]) continue;
          if (latest_only && outdone(a, b, at)) continue;
          ++out[{acts_[a].step, acts_[b].step, acts_[a].command, acts_[b].command}];
        }
    return out;
  }

 private:
  enum class Byte : uint8_t { untouched, read, written };
  struct Act {
    StepIndex step;
    uint32_t command;
    size_t node;
    std::vector<Byte> at;
  };
  static bool conflict(Byte a, Byte b) {
    return a != Byte::untouched && b != Byte::untouched &&
           (a == Byte::written || b == Byte::written);
  }
  bool outdone(size_t a, size_t b, uint64_t at) const {
    for (size_t c = a + 1; c < b; ++c) {
      const Byte touched = acts_[c].at[at];
      if (touched == Byte::untouched || !before_[acts_[c].node][acts_[a].node]) continue;
      if (touched == Byte::written || acts_[a].at[at] == Byte::read) return true;
    }
    return false;
  }
  void keep(StepIndex step, uint32_t command, size_t node, const Sample& s) {
    Act act{step, command, node, std::vector<Byte>(kLineBytes, Byte::untouched)};
    for (const Region& region : s.program.operands_of(s.program.commands[command])) {
      const uint64_t begin = s.extents.of(region.buffer).begin + region.offset_bytes;
      for (uint64_t at = begin; at < begin + region.size_bytes; ++at) {
        if (writes(region.access)) {
          act.at[at] = Byte::written;
        } else if (reads(region.access) && act.at[at] == Byte::untouched) {
          act.at[at] = Byte::read;
        }
      }
    }
    acts_.push_back(std::move(act));
  }
  size_t new_node() {
    before_.emplace_back();
    REQUIRE(before_.size() <= kMaxNodes);
    return before_.size() - 1;
  }
  void edge(size_t from, size_t to) {
    if (from != kNone) before_[to].set(from);
  }
  // Edges lead from lower to higher nodes but for a launch, which is numbered after its first node.
  void close() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& row : before_) {
        const auto old = row;
        for (size_t m = 0; m < before_.size(); ++m)
          if (old[m]) row |= before_[m];
        changed = changed || row != old;
      }
    }
  }

  std::vector<std::bitset<kMaxNodes>> before_;  // by node: what precedes it
  std::vector<Act> acts_;
  std::vector<size_t> last_ = std::vector<size_t>(kStreams, kNone);
  size_t host_ = kNone;
};

RaceBytes races_of(const std::vector<Finding>& findings) {
  RaceBytes out;
  for (const Finding& f : findings) {
    if (f.kind != FindingKind::race) continue;
    const PairKey key{f.first.step, f.second.step, f.first.command, f.second.command};
    REQUIRE(out.emplace(key, f.size_bytes).second);  // each pair once
    REQUIRE(f.step == f.second.step);
  }
  return out;
}

TEST_CASE("2,000 random programs: the racing pairs and their bytes are those of brute force") {
  auto names = std::make_shared<NameTable>();
  names->intern("op");
  const auto persistents = std::make_shared<const std::vector<PersistentBuffer>>(
      std::vector<PersistentBuffer>{{0, 8, 0, true}, {0, 8, 0, true}});
  uint64_t racing = 0, clean = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    RandomSequence random(seed, 17);
    HazardChecker checker;
    BruteForce brute;
    std::vector<Finding> found;
    const uint64_t steps = 1 + random.below(4);
    for (StepIndex step = 0; step < steps; ++step) {
      const Sample s = random_sample(random, names, persistents);
      checker.add(step, s.program, s.extents, s.submission, found);
      brute.add(step, s);
      if (!s.sync_all_after) continue;
      checker.sync_all();
      brute.sync_all();
    }
    const RaceBytes seen = races_of(found);
    const RaceBytes expected = brute.races(true), all = brute.races(false);
    REQUIRE(seen == expected);
    // None is invented, and no command that races at all goes unreported.
    std::set<std::tuple<StepIndex, uint32_t>> seen_seconds, all_seconds;
    for (const auto& [key, bytes] : seen) {
      REQUIRE(all.contains(key));
      seen_seconds.emplace(key.second_step, key.second);
    }
    for (const auto& [key, bytes] : all) all_seconds.emplace(key.second_step, key.second);
    REQUIRE(seen_seconds == all_seconds);
    ++(seen.empty() ? clean : racing);
  }
  CHECK(racing > 500);
  CHECK(clean > 50);
}

TEST_CASE("findings are a function of the programs: twice the same, to the last field") {
  auto names = std::make_shared<NameTable>();
  names->intern("op");
  const auto persistents = std::make_shared<const std::vector<PersistentBuffer>>(
      std::vector<PersistentBuffer>{{0, 8, 0, true}, {0, 8, 0, false}});
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<Finding> runs[2];
    for (auto& run : runs) {
      RandomSequence random(seed, 18);
      HazardChecker checker;
      for (StepIndex step = 0; step < 3; ++step) {
        const Sample s = random_sample(random, names, persistents);
        checker.add(step, s.program, s.extents, s.submission, run);
      }
    }
    REQUIRE(runs[0] == runs[1]);
  }
}

}  // namespace
}  // namespace redecode
