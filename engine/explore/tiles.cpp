#include "engine/explore/tiles.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/explore/orders.h"

namespace redecode {
namespace {

// One half of every range of a command, as ranges of their own.
void take_half(Program& p, Command& c, bool second) {
  const auto halves = [&](std::vector<Region>& table, uint32_t& first, uint32_t count) {
    const uint32_t from = first;
    first = static_cast<uint32_t>(table.size());
    for (uint32_t i = 0; i < count; ++i) {
      Region r = table[from + i];
      const uint64_t half = r.size_bytes / 2;
      if (second) r.offset_bytes += half;
      r.size_bytes = second ? r.size_bytes - half : half;
      table.push_back(r);
    }
  };
  halves(p.regions, c.first_region, c.region_count);
  halves(p.touched, c.first_touched, c.touched_count);
}

Command event_of(CommandKind kind, StreamId stream, uint32_t event, const Command& beside) {
  Command c;
  c.kind = kind;
  c.stream = stream;
  c.event = static_cast<EventId>(event);
  c.name = beside.name;
  c.layer = beside.layer;
  return c;
}

}  // namespace

std::optional<TiledProgram> tiled(const Program& program, uint32_t command, uint32_t other) {
  const Command& op = program.commands[command];
  const bool is_op = op.kind == CommandKind::launch || op.kind == CommandKind::copy ||
                     op.kind == CommandKind::fill;
  if (!is_op || op.before_wait || program.stream_count >= kMaxStreams ||
      program.event_count + 2 > std::numeric_limits<EventId>::max())
    return std::nullopt;
  TiledProgram out;
  Program& p = out.program;
  p = program;
  const auto side = static_cast<StreamId>(p.stream_count++);
  if (p.is_outside(op.stream)) p.outside_streams |= uint32_t{1} << side;
  const uint32_t fork = p.event_count, join = p.event_count + 1;
  p.event_count += 2;
  Command first = op, second = op;
  second.stream = side;
  take_half(p, first, false);
  take_half(p, second, true);
  const std::vector<Command> split = {event_of(CommandKind::record, op.stream, fork, op),
                                      event_of(CommandKind::wait, side, fork, op),
                                      first,
                                      second,
                                      event_of(CommandKind::record, side, join, op),
                                      event_of(CommandKind::wait, op.stream, join, op)};
  p.commands.erase(p.commands.begin() + command);
  p.commands.insert(p.commands.begin() + command, split.begin(), split.end());
  out.first_tile = command + 2;
  out.second_tile = command + 3;
  out.other = other < command ? other : other + static_cast<uint32_t>(split.size()) - 1;
  return out;
}

std::optional<ContentFault> torn_run(const Program& program, const ExtentTable& extents,
                                     Submission submission, uint32_t command, uint32_t other) {
  const auto tiles = tiled(program, command, other);
  if (!tiles) return std::nullopt;
  const OpGraph graph = op_graph(tiles->program, submission);
  const uint32_t between = graph.node_of[tiles->other];
  const uint32_t first = graph.node_of[tiles->first_tile];
  const uint32_t second = graph.node_of[tiles->second_tile];
  ContentModel model(tiles->program, extents, graph);
  for (const auto& [early, late] : {std::pair(first, second), std::pair(second, first)}) {
    const NodePair pairs[] = {{early, between}, {between, late}};
    const auto order = constrained_order(graph, pairs);
    if (!order) continue;
    const ContentFault fault = model.run(*order);
    if (fault.wrong) return fault;
  }
  const NodePair pairs[] = {{first, between}, {between, second}};
  return constrained_order(graph, pairs) ? std::optional(ContentFault{}) : std::nullopt;
}

}  // namespace redecode
