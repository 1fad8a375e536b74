#include "engine/repair/fix_price.h"

#include <algorithm>

#include "engine/price/timed_run.h"

namespace redecode {
namespace {

double step_us(const Program& program, Submission submission, const DeviceSpec& device,
               std::span<const RepairEdge> edges = {}) {
  const OpGraph graph = op_graph(program, submission);
  std::vector<std::pair<uint32_t, uint32_t>> more;
  for (const RepairEdge& e : edges)
    more.emplace_back(graph.node_of[e.after], graph.node_of[e.before]);
  return timed_run(program, graph, device, submission, more).step_us;
}

}  // namespace

Program on_stream(const Program& program, std::optional<StreamId> from, StreamId to) {
  Program out = program;
  for (Command& c : out.commands)
    if (c.kind != CommandKind::host && c.stream != kHost && (!from || c.stream == *from))
      c.stream = to;
  return out;
}

FixPrice price_fix(const Program& program, Submission submission, std::span<const Finding> races,
                   const Repair& repair, const DeviceSpec& device) {
  FixPrice out;
  out.device = device.name;
  out.overlap_us = step_us(program, submission, device);
  out.single_us = step_us(on_stream(program, std::nullopt, 0), submission, device);
  out.fixed_us = step_us(program, submission, device, repair.edges);
  out.gain_kept = gain_kept(out.single_us, out.overlap_us, out.fixed_us);
  const auto two_streams = std::ranges::find_if(races, [](const Finding& f) {
    return f.first.stream != kHost && f.second.stream != kHost && f.first.stream != f.second.stream;
  });
  if (two_streams != races.end()) {
    const auto a = static_cast<StreamId>(two_streams->first.stream);
    const auto b = static_cast<StreamId>(two_streams->second.stream);
    out.serialised_us =
        step_us(on_stream(program, std::max(a, b), std::min(a, b)), submission, device);
  }
  return out;
}

}  // namespace redecode
