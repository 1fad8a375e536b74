// engine/explore/explorer.h - Explorer: searches the orders of a program for one that goes wrong.
//
// Runs contents, not values (ContentModel), so it needs no device and tries hundreds of thousands
// of orders a second on small programs. Four ways, each reported apart: guided (one order a racing
// pair, which runs the later op first), random, pct, and exhaustive where the program is small. A
// failing order is shrunk to the fewest pairs that run against program order, and written as
// anchors.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/explore/content_model.h"
#include "engine/explore/orders.h"
#include "engine/explore/tiles.h"
#include "engine/plan/anchor.h"
#include "traces/finding.h"

namespace redecode {

struct ExploreOptions {
  uint64_t seed = 1;
  uint64_t random_orders = 1000;
  uint64_t pct_orders = 1000;
  uint32_t pct_depth = 2;
  uint64_t exhaustive_limit = 200'000;
  std::optional<uint32_t> preemptions;        // of the exhaustive search
  StepIndex step = 0;                         // written into the order strings
  Submission submission = Submission::eager;  // of the graph; for tiles
  std::function<bool()> stop;                 // polled between orders; null: never
};

// A shrunk order that goes wrong.
struct Witness {
  std::vector<NodePair> flips;  // nodes that run against program order: (first, then)
  std::string order;            // "before:0/b<a"; "fifo" without flips
  ContentFault fault;
};

// What a racing pair comes to.
struct PairResult {
  uint32_t first = 0, second = 0;  // nodes, in program order
  bool flips_alone = false;        // an order runs them the other way round
  std::optional<Witness> witness;  // of the order that flips this pair
  bool torn_by_first = false;      // the first op between tiles of the second goes wrong
  bool torn_by_second = false;     // and the other way round
};

struct SearchCount {
  uint64_t tried = 0, wrong = 0;
  uint64_t first_wrong = 0;  // counting from 1; 0: none
  uint64_t outcomes = 0;     // different ones seen
  uint64_t seen_once = 0;    // of these: each counts for orders not yet seen (Good-Turing)
};

struct Exploration {
  uint32_t ops = 0, lanes = 0;
  bool fifo_wrong = false;        // the fault needs no order
  std::vector<PairResult> pairs;  // of the races given
  SearchCount guided, tiles, random, pct;
  double pct_bound = 0;  // least chance of one pct order
  ExhaustiveResult exhaustive;
  SearchCount exhaustive_count;
  std::optional<Witness> witness;  // fewest flips of all that were found
  bool stopped = false;
};

// `races`: findings of kind race of this program. Cost: see ContentModel, times the orders asked
// for.
Exploration explore(const Program& program, const ExtentTable& extents, const OpGraph& graph,
                    const std::vector<Finding>& races, const ExploreOptions& options);

// "explored all 12 classes of orders: ..." - what was covered, and whether to go on.
std::string coverage_line(const Exploration& exploration);

}  // namespace redecode
