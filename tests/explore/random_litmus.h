// tests/explore/random_litmus.h - small random litmus programs, and all that can happen in them by
// brute force: the yardstick for checker and explorer.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "traces/program.h"
#include "traces/random.h"

namespace redecode {

struct RandomLitmusOptions {
  uint32_t least_ops = 4, most_ops = 9;
  bool prologues = true;
  bool outside = true;
  bool syncs = true;
};

// Text of a litmus file: kernels of one or two operands on up to three streams and the host, events
// that may be recorded anew, waits and syncs.
std::string random_litmus(RandomSequence& random, const RandomLitmusOptions& options = {});

// Pairs of commands (a < b) that touch common bytes, one writing, and that some state of the
// machine lets run next in either order. The machine has a host that issues in program order,
// stream queues, events by generation, and no clocks: every state that can be reached is visited.
// For programs of at most 24 commands.
std::set<std::pair<uint32_t, uint32_t>> flippable_pairs(const Program& program);

}  // namespace redecode
