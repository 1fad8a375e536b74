#include "cli/explore_litmus.h"

#include <algorithm>

#include "cli/explore_text.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/litmus/verdict.h"
#include "engine/plan/op_graph.h"
#include "engine/repair/repair.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

struct LitmusExploration {
  LitmusProgram program;
  std::vector<Finding> findings, races;
  Exploration exploration;
  Repair repair;
};

std::string node_text(const LitmusExploration& x, const OpGraph& graph, uint32_t node) {
  const uint32_t command = graph.commands[node];
  return "`" + std::string((*x.program.program.names)[x.program.program.commands[command].name]) +
         "` (" + to_text(x.program.ids[command]) + ")";
}

std::string fault_text(const LitmusExploration& x, const OpGraph& graph, const ContentFault& f) {
  const std::string writer =
      f.writer == OpGraph::kNoNode ? "nobody in this program" : node_text(x, graph, f.writer);
  if (f.node == OpGraph::kNoNode) return "the content at the end is that of " + writer;
  return node_text(x, graph, f.node) + " sees the content of " + writer;
}

std::string text_of(const Litmus& litmus, const LitmusExploration& x, const OpGraph& graph) {
  const Exploration& e = x.exploration;
  std::string out = "explored " + litmus.name + '\n';
  out += labelled("program", with_thousands(e.ops) + " ops on " + with_thousands(e.lanes) +
                                 (e.lanes == 1 ? " actor" : " actors"));
  for (const Finding& f : x.findings) out += "  " + litmus_sentence(f, x.program) + '\n';
  out += labelled("wrong orders", searches_text(e));
  out += labelled("coverage", coverage_line(e));
  if (e.fifo_wrong) {
    out += labelled("witness", "fifo: no order is needed, every run goes wrong; " +
                                   fault_text(x, graph, e.witness->fault));
  } else if (e.witness) {
    out += labelled("witness", e.witness->order + ": " + fault_text(x, graph, e.witness->fault));
    out += labelled("neighbour", "fifo does not go wrong");
  } else {
    out += labelled("witness", "none: no order tried goes wrong");
  }
  return out + repair_text(x.program.program, x.races, x.repair);
}

std::string json_of(const Litmus& litmus, const LitmusExploration& x) {
  const Exploration& e = x.exploration;
  JsonWriter json;
  json.begin_object().member("scenario", litmus.name);
  json.member("ops", e.ops).member("actors", e.lanes);
  json.key("findings").begin_array();
  for (const LitmusExpect& v : verdicts_of(x.findings, x.program)) json.value(to_text(v));
  json.end_array();
  searches_json(e, json);
  json.member("coverage", coverage_line(e)).member("fifo_wrong", e.fifo_wrong);
  json.key("witness");
  if (e.witness)
    json.value(e.witness->order);
  else
    json.null();
  json.key("pairs").begin_array();
  for (size_t i = 0; i < e.pairs.size(); ++i) {
    json.begin_object().member("first", x.races[i].first.op).member("second", x.races[i].second.op);
    json.member("flips", e.pairs[i].flips_alone);
    json.member("torn_by_first", e.pairs[i].torn_by_first);
    json.member("torn_by_second", e.pairs[i].torn_by_second);
    json.member("order", e.pairs[i].witness ? e.pairs[i].witness->order : std::string());
    json.end_object();
  }
  json.end_array();
  repair_json(x.program.program, x.races, x.repair, json);
  json.end_object();
  return json.take();
}

}  // namespace

int explore_litmus(const CommandContext& context, const std::string& path,
                   const ExploreOptions& options) {
  const Litmus litmus = load_litmus(path);
  LitmusExploration x;
  x.program = lower(litmus);
  x.findings = check_litmus(x.program);
  std::ranges::copy_if(x.findings, std::back_inserter(x.races),
                       [](const Finding& f) { return f.kind == FindingKind::race; });
  const OpGraph graph = op_graph(x.program.program, Submission::eager);
  x.exploration = explore(x.program.program, x.program.extents, graph, x.races, options);
  x.repair = repair(x.program.program, x.program.extents, Submission::eager, x.races);
  emit(context, text_of(litmus, x, graph), json_of(litmus, x));
  return x.exploration.witness || !verdicts_of(x.findings, x.program).empty() ? 1 : 0;
}

}  // namespace redecode
