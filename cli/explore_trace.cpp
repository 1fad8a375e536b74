#include "cli/explore_trace.h"

#include <algorithm>

#include "cli/explore_text.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "compare/divergence.h"
#include "compare/interval.h"
#include "compare/rows.h"
#include "engine/decoder/plan_check.h"
#include "engine/model/factory.h"
#include "engine/repair/repair.h"
#include "replayer/step_lab.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

struct Tries {
  uint64_t tried = 0, wrong = 0;
};

struct GuidedRun {
  size_t race = 0;
  std::string order;
  bool fits = true;  // an edge may forbid it
  bool wrong = false;
};

struct TraceExploration {
  StepIndex step = 0;
  StepStructure structure;
  std::vector<GuidedRun> guided;
  Tries guided_tries, random_tries, witness_tries, fifo_tries;
  std::optional<uint64_t> first_seed;
  std::string witness;  // empty: none
  Repair repair;
};

// The first step whose structure has a finding that conflicts.
std::optional<StepIndex> first_finding(const CommandContext& context, const Trace& trace,
                                       const Mode& mode) {
  KernelTable kernels;
  const auto model = make_model(trace.header.model.spec, trace.header.engine, mode.index_key,
                                add_exact_kernels(kernels));
  PlanChecker checker(kernels, *model, mode);
  Progress progress(context, "checking structure", "steps");
  for (const Step& step : trace.steps) {
    if (context.stopped()) return std::nullopt;
    checker.add(step);
    progress.update(checker.steps(), trace.steps.size());
    for (const Finding& f : checker.inspector().findings())
      if (f.severity == Severity::conflicting) return step.index;
  }
  return std::nullopt;
}

class TraceExplorer {
 public:
  TraceExplorer(const CommandContext& context, const Trace& trace, const Mode& mode,
                const ExploreTraceOptions& options, StepIndex step)
      : context_(context), options_(options), candidate_(trace, step, mode, options.threads) {
    out_.step = step;
    Mode clean;
    clean.index_key = mode.index_key;
    clean.topk = mode.topk;
    StepLab golden(trace, step, clean, options.threads);
    expected_ = golden.run("fifo");
  }

  TraceExploration run() {
    out_.structure = candidate_.structure();
    if (fails("fifo")) out_.witness = "fifo";
    guided();
    random();
    confirm();
    out_.repair = repair(out_.structure.program, out_.structure.extents, out_.structure.submission,
                         out_.structure.races);
    return std::move(out_);
  }

 private:
  bool fails(const std::string& order) {
    return compare_step(expected_, candidate_.run(order)).first.has_value();
  }

  void guided() {
    Progress progress(context_, "guided orders", "orders");
    const auto& races = out_.structure.races;
    const size_t count = std::min<size_t>(races.size(), options_.guided_orders);
    for (size_t i = 0; i < count && !context_.stopped(); ++i) {
      GuidedRun run;
      run.race = i;
      PrecedenceScript script;
      script.steps[out_.step] = {{anchor_of(out_.structure.program, races[i].second.command),
                                  anchor_of(out_.structure.program, races[i].first.command)}};
      run.order = "before:" + to_text(script);
      try {
        run.wrong = fails(run.order);
      } catch (const Error& e) {
        if (e.code() != ErrorCode::usage) throw;
        run.fits = false;
      }
      out_.guided_tries.tried += run.fits;
      out_.guided_tries.wrong += run.wrong;
      if (run.wrong && (out_.witness.empty())) out_.witness = run.order;
      out_.guided.push_back(std::move(run));
      progress.update(i + 1, count);
    }
  }

  void random() {
    Progress progress(context_, "random orders", "orders");
    for (uint64_t seed = 1; seed <= options_.random_orders && !context_.stopped(); ++seed) {
      const std::string order = "seed:" + std::to_string(seed);
      ++out_.random_tries.tried;
      if (fails(order)) {
        ++out_.random_tries.wrong;
        if (!out_.first_seed) out_.first_seed = seed;
        if (out_.witness.empty()) out_.witness = order;
      }
      progress.update(seed, options_.random_orders);
    }
  }

  void confirm() {
    if (out_.witness.empty()) return;
    Progress progress(context_, "confirming", "runs");
    for (uint32_t i = 0; i < options_.repeats && !context_.stopped(); ++i) {
      ++out_.witness_tries.tried;
      out_.witness_tries.wrong += fails(out_.witness);
      ++out_.fifo_tries.tried;
      out_.fifo_tries.wrong += fails("fifo");
      progress.update(i + 1, options_.repeats);
    }
  }

  const CommandContext& context_;
  const ExploreTraceOptions& options_;
  StepLab candidate_;
  StepOutput expected_;
  TraceExploration out_;
};

std::string of(const Tries& t) {
  return with_thousands(t.wrong) + " of " + with_thousands(t.tried);
}

std::string random_text(const TraceExploration& x) {
  const RateInterval i = clopper_pearson(x.random_tries.wrong, x.random_tries.tried);
  std::string out = of(x.random_tries) + " random orders go wrong (" + tenths(100 * i.lower) + "-" +
                    tenths(100 * i.upper) + " % at 95 %)";
  if (x.first_seed) out += ", the first: seed:" + std::to_string(*x.first_seed);
  return out;
}

std::string text_of(const std::string& path, const Mode& mode, const TraceExploration& x) {
  const StepStructure& s = x.structure;
  std::string out = "explored step " + std::to_string(x.step) + " of " + path + '\n';
  out += labelled("mode", describe(mode));
  out += labelled("program", with_thousands(s.program.commands.size()) + " commands on " +
                                 std::to_string(s.program.stream_count) + " streams");
  out += labelled("findings", s.findings.empty() ? "none" : with_thousands(s.findings.size()));
  const std::vector<uint64_t> counts(s.findings.size(), 1);
  out += findings_text(s.findings, counts);
  out += labelled("guided", of(x.guided_tries) + " orders that flip a racing pair go wrong");
  if (x.random_tries.tried != 0) out += labelled("random", random_text(x));
  if (x.witness.empty()) {
    out += labelled("witness", "none: no order tried changes this step's output");
  } else {
    out += labelled("witness", x.witness);
    out += labelled("", "fails " + of(x.witness_tries) + " times" +
                            (x.witness == "fifo" ? ": the order does not decide"
                                                 : "; fifo fails " + of(x.fifo_tries)));
  }
  return out + repair_text(s.program, s.races, x.repair);
}

void tries_json(const char* key, const Tries& t, JsonWriter& json) {
  json.key(key).begin_object().member("tried", t.tried).member("wrong", t.wrong).end_object();
}

std::string json_of(const std::string& path, const Mode& mode, const TraceExploration& x) {
  JsonWriter json;
  json.begin_object().member("subject", path).member("step", x.step);
  json.key("mode").raw(mode_json(mode));
  const std::vector<uint64_t> counts(x.structure.findings.size(), 1);
  findings_json(x.structure.findings, counts, json);
  tries_json("guided", x.guided_tries, json);
  tries_json("random", x.random_tries, json);
  json.key("orders").begin_array();
  for (const GuidedRun& g : x.guided) {
    json.begin_object().member("order", g.order).member("fits", g.fits);
    json.member("wrong", g.wrong).end_object();
  }
  json.end_array().key("witness");
  if (x.witness.empty())
    json.null();
  else
    json.value(x.witness);
  tries_json("witness_runs", x.witness_tries, json);
  tries_json("fifo_runs", x.fifo_tries, json);
  repair_json(x.structure.program, x.structure.races, x.repair, json);
  json.end_object();
  return json.take();
}

}  // namespace

int explore_trace(const CommandContext& context, const std::string& path, const Trace& trace,
                  const Mode& mode, const ExploreTraceOptions& options) {
  std::optional<StepIndex> step = options.step;
  if (!step) step = first_finding(context, trace, mode);
  if (context.stopped()) throw Error(ErrorCode::environment, "stopped by a signal", path);
  if (!step) {
    JsonWriter json;
    json.begin_object().member("subject", path).key("step").null().key("findings").begin_array();
    json.end_array().key("witness").null().end_object();
    emit(context,
         "explored " + path + '\n' + labelled("mode", describe(mode)) +
             labelled("findings", "none in the structure of " + with_thousands(trace.steps.size()) +
                                      " steps: every conflicting pair is ordered; name a step "
                                      "with --step to try orders on it all the same"),
         json.take());
    return 0;
  }
  TraceExplorer explorer(context, trace, mode, options, *step);
  const TraceExploration x = explorer.run();
  if (context.stopped()) throw Error(ErrorCode::environment, "stopped by a signal", path);
  emit(context, text_of(path, mode, x), json_of(path, mode, x));
  return x.witness.empty() && x.structure.findings.empty() ? 0 : 1;
}

}  // namespace redecode
