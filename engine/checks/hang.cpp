#include "engine/checks/hang.h"

#include <string>

#include "engine/plan/reachability.h"

namespace redecode {
namespace {

FindingSide side_of(StepIndex step, const Program& program, uint32_t command) {
  const Command& c = program.commands[command];
  FindingSide side;
  side.op = (*program.names)[c.name];
  side.layer = c.layer;
  side.stream = c.kind == CommandKind::host ? kHost : c.stream;
  side.command = command;
  side.step = step;
  side.access = Access::none;
  return side;
}

Finding finding_of(StepIndex step, const Program& program, uint32_t command) {
  Finding f;
  f.kind = FindingKind::hang;
  f.check = "hang";
  f.step = step;
  f.layer = program.commands[command].layer;
  f.first = side_of(step, program, command);
  return f;
}

void check_residency(StepIndex step, const Program& program, const OpGraph& graph,
                     const Reachability& reach, uint32_t node, std::vector<Finding>& out) {
  for (uint32_t other = 0; other < graph.size(); ++other) {
    const Command& c = program.commands[graph.commands[other]];
    if (other == node || c.kind != CommandKind::launch || reach.ordered(node, other)) continue;
    Finding f = finding_of(step, program, graph.commands[node]);
    f.second = side_of(step, program, graph.commands[other]);
    f.advice = "Order `" + f.second.op + "` before or after `" + f.first.op + "`, or launch `" +
               f.first.op + "` with no more blocks than fit beside it";
    out.push_back(std::move(f));
    return;
  }
}

void check_wait(StepIndex step, const Program& program, uint32_t command,
                const std::vector<bool>& recorded, std::vector<Finding>& out) {
  const Command& c = program.commands[command];
  if (recorded[c.event]) return;
  Finding f = finding_of(step, program, command);
  if (c.stream == kHost || program.is_outside(c.stream)) {
    f.advice = "Nobody records this event: record it, or drop the wait";
  } else {
    f.severity = Severity::unusual;
    f.advice =
        "Nobody records this event: on a stream such a wait returns at once and orders "
        "nothing; record the event, or drop the wait";
  }
  out.push_back(std::move(f));
}

}  // namespace

void check_hangs(StepIndex step, const Program& program, Submission submission,
                 std::vector<Finding>& out) {
  std::vector<bool> recorded(program.event_count);
  bool any_resident = false;
  for (const Command& c : program.commands) {
    if (c.kind == CommandKind::record) recorded[c.event] = true;
    any_resident = any_resident || (c.kind == CommandKind::launch && c.needs_all_blocks);
  }
  std::vector<Finding> fresh;
  if (any_resident) {
    const OpGraph graph = op_graph(program, submission);
    const Reachability reach(graph);
    for (uint32_t node = 0; node < graph.size(); ++node)
      if (program.commands[graph.commands[node]].needs_all_blocks)
        check_residency(step, program, graph, reach, node, fresh);
  }
  for (uint32_t i = 0; i < program.commands.size(); ++i)
    if (program.commands[i].kind == CommandKind::wait)
      check_wait(step, program, i, recorded, fresh);
  out.insert(out.end(), std::make_move_iterator(fresh.begin()),
             std::make_move_iterator(fresh.end()));
}

}  // namespace redecode
