// engine/repair/repair.h - Repair: the fewest edges that order every racing pair, and what else
// would.
//
// An edge is an event recorded on one stream right after an op and waited for on another right
// before one (or a sync of the host). Of all edges between two actors, the fewest are chosen that
// stand between every racing pair of theirs; edges that others imply are then taken away, so that
// the set is minimal: without any one of them a race is left. Where several would do, the one that
// holds the later stream up least is taken: recorded as early, waited for as late as its pairs
// allow.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/hazards.h"
#include "engine/plan/op_graph.h"
#include "traces/finding.h"

namespace redecode {

struct RepairEdge {
  uint32_t after = 0, before = 0;  // commands: the edge leads from the first to the second
  std::vector<size_t> covers;      // indices of the races that it is there for
  bool operator==(const RepairEdge&) const = default;
};

// Ways to mend one race. Each was applied to the program and the race was gone, and no new finding
// there, unless `verified` says otherwise.
enum class RepairKind : uint8_t {
  wait,           // an event edge
  host_sync,      // the host waits for a stream
  record_stream,  // the block's free is deferred until the other stream's use is done
  keep_alive,     // the input is freed after the join
  serialise,      // the later op's stream does what the earlier one's does: no overlap
  pdl_wait,       // the kernel waits for the one before it before it touches the bytes
};
std::string_view to_text(RepairKind kind);

struct RepairOption {
  RepairKind kind = RepairKind::wait;
  bool verified = false;
  std::string text;  // what to change, in words
};

struct Repair {
  std::vector<RepairEdge> edges;                   // the minimal set, in program order
  std::vector<std::vector<RepairOption>> options;  // [races]
  std::vector<uint32_t> needless_waits;            // commands: each can go alone without a finding
};

struct RepairOptions {
  bool find_needless_waits = true;  // one check of the program a wait
  uint32_t most_needless_checks = 512;
};

// `races`: findings of this program alone (both sides in it). All pairs must be there: see
// RacePairs::all. Cost: O(races log races + edges * nodes), and one check of the program an option.
Repair repair(const Program& program, const ExtentTable& extents, Submission submission,
              std::span<const Finding> races, const RepairOptions& options = {});

// The program with these edges, as record and wait commands (or syncs) with events of their own.
// Command indices of the result differ; `edges` name those of `program`.
Program with_edges(const Program& program, std::span<const RepairEdge> edges);

// Races of a program by itself, all pairs.
std::vector<Finding> races_of(const Program& program, const ExtentTable& extents,
                              Submission submission);

// "after `consume` (command 7, stream 0): record; before `next_layer_tmp` (command 10, stream 1):
// wait" - one line an edge, as a patch of the stream plan.
std::string patch_text(const Program& program, std::span<const RepairEdge> edges);

}  // namespace redecode
