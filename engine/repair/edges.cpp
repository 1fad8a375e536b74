#include "engine/repair/edges.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/plan/reachability.h"
#include "traces/check.h"

namespace redecode {
namespace {

StreamId actor_of(const Command& c) { return c.kind == CommandKind::host ? kHost : c.stream; }

// Pairs between two actors as intervals of commands: an edge recorded and waited for at a cut in
// [first, second) stands between the two. Stabbing intervals by their right ends takes the fewest
// cuts.
void stab(std::vector<size_t> indices, std::span<const RacePair> pairs,
          std::vector<RepairEdge>& out) {
  std::ranges::sort(indices, {}, [&](size_t i) { return std::pair(pairs[i].second, i); });
  RepairEdge edge;
  const auto flush = [&] {
    if (!edge.covers.empty()) out.push_back(edge);
    edge = {};
  };
  uint32_t cut = 0;
  for (const size_t i : indices) {
    const RacePair& p = pairs[i];
    if (edge.covers.empty() || p.first >= cut) {
      flush();
      cut = p.second;
      edge.before = p.second;
      edge.after = p.first;
    }
    edge.after = std::max(edge.after, p.first);
    edge.before = std::min(edge.before, p.second);
    edge.covers.push_back(i);
  }
  flush();
}

uint32_t last_op_before(const Program& program, const OpGraph& graph, StreamId stream,
                        uint32_t command) {
  while (command-- > 0)
    if (graph.node_of[command] != OpGraph::kNoNode && actor_of(program.commands[command]) == stream)
      return command;
  REDECODE_CHECK(false);
  return 0;
}

// The graph of the program with these edges beside its own.
OpGraph with_more(const OpGraph& graph, std::span<const RepairEdge> edges, size_t left_out) {
  std::map<uint32_t, std::vector<uint32_t>> more;
  for (size_t i = 0; i < edges.size(); ++i)
    if (i != left_out)
      more[graph.node_of[edges[i].before]].push_back(graph.node_of[edges[i].after]);
  OpGraph out;
  out.lanes = graph.lanes;
  out.lane_count = graph.lane_count;
  out.commands = graph.commands;
  out.node_of = graph.node_of;
  out.first_pred.push_back(0);
  for (uint32_t node = 0; node < graph.size(); ++node) {
    const auto preds = graph.preds_of(node);
    out.preds.insert(out.preds.end(), preds.begin(), preds.end());
    if (const auto at = more.find(node); at != more.end())
      out.preds.insert(out.preds.end(), at->second.begin(), at->second.end());
    out.first_pred.push_back(static_cast<uint32_t>(out.preds.size()));
  }
  return out;
}

bool all_ordered(const OpGraph& graph, std::span<const RacePair> pairs) {
  const Reachability reach(graph);
  return std::ranges::all_of(pairs, [&](const RacePair& p) {
    return reach.precedes(graph.node_of[p.first], graph.node_of[p.second]);
  });
}

}  // namespace

std::vector<RepairEdge> fewest_edges(const Program& program, const OpGraph& graph,
                                     std::span<const RacePair> pairs) {
  std::map<std::pair<StreamId, StreamId>, std::vector<size_t>> by_actors;
  for (size_t i = 0; i < pairs.size(); ++i)
    by_actors[{actor_of(program.commands[pairs[i].first]),
               actor_of(program.commands[pairs[i].second])}]
        .push_back(i);
  std::vector<RepairEdge> edges;
  for (auto& [actors, indices] : by_actors) stab(indices, pairs, edges);
  // The host waits for all that its stream has by then.
  for (RepairEdge& e : edges)
    if (actor_of(program.commands[e.before]) == kHost)
      e.after = last_op_before(program, graph, actor_of(program.commands[e.after]), e.before);
  std::ranges::sort(edges, {}, [](const RepairEdge& e) { return std::pair(e.before, e.after); });
  // What others imply goes, later edges first: the earlier one holds less up.
  for (size_t i = edges.size(); i-- > 0 && edges.size() > 1;) {
    if (!all_ordered(with_more(graph, edges, i), pairs)) continue;
    edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return edges;
}

}  // namespace redecode
