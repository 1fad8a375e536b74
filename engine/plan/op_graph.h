// engine/plan/op_graph.h - OpGraph: the ops of one program and what each directly follows.
//
// Nodes are the commands that touch memory or take time: launches, copies, fills and host commands,
// in program order. An edge says that the earlier must be done before the later begins: stream
// order, events (by generation), host issue, sync; see Ordering for the rules, which this follows
// by other means: frontiers instead of clocks. Edges that others imply on the same actor are left
// out.
//
// Cost: O(commands * actors).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/hazards.h"
#include "traces/program.h"

namespace redecode {

struct OpGraph {
  std::vector<uint32_t> commands;  // [nodes] index into the program
  std::vector<uint16_t> lanes;     // [nodes] nodes of one lane follow each other
  uint32_t lane_count = 0;
  std::vector<uint32_t> first_pred;         // [nodes + 1] into preds
  std::vector<uint32_t> preds;              // earlier nodes
  std::vector<uint32_t> first_succ, succs;  // the same edges, the other way
  std::vector<uint32_t> node_of;            // [commands of the program]; kNoNode: not an op

  static constexpr uint32_t kNoNode = UINT32_MAX;
  uint32_t size() const { return static_cast<uint32_t>(commands.size()); }
  std::span<const uint32_t> preds_of(uint32_t node) const {
    return {preds.data() + first_pred[node], first_pred[node + 1] - first_pred[node]};
  }
  std::span<const uint32_t> succs_of(uint32_t node) const {
    return {succs.data() + first_succ[node], first_succ[node + 1] - first_succ[node]};
  }
};

OpGraph op_graph(const Program& program, Submission submission);

}  // namespace redecode
