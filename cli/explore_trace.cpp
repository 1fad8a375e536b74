#include "cli/explore_trace.h"

#include <algorithm>

#include "cli/explore_text.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/price_text.h"
#include "cli/progress.h"
#include "compare/divergence.h"
#include "compare/interval.h"
#include "compare/rows.h"
#include "engine/decoder/plan_check.h"
#include "engine/model/factory.h"
#include "engine/repair/fix_price.h"
#include "replayer/replay.h"
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
  std::optional<FixPrice> price;
};

// The same model as `mode` runs it, eager on one stream in fifo order, without defects.
Mode clean_mode(const Mode& mode) {
  Mode clean;
  clean.index_key = mode.index_key;
  clean.topk = mode.topk;
  return clean;
}

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

std::string flip_of(const StepStructure& s, const Finding& race, const std::string& step) {
  return "before:" + step + '/' + to_text(anchor_of(s.program, race.second.command)) + '<' +
         to_text(anchor_of(s.program, race.first.command));
}

// Not every step whose structure has a race shows it in its output. Each racing pair, flipped in
// every step of one replay, leads to the first step that does.
class StepSearch {
 public:
  StepSearch(const CommandContext& context, const Trace& trace, const Mode& mode,
             const ExploreTraceOptions& options)
      : context_(context), trace_(trace), options_(options), mode_(mode) {}

  std::optional<StepIndex> run(const StepStructure& structure) {
    ReplayOptions clean = replay_options(clean_mode(mode_));
    clean.output = [&](const StepOutput& o) { golden_.push_back(o); };
    replay(trace_, clean);
    if (context_.stopped()) return std::nullopt;
    if (const auto step = first_difference()) return step;  // whatever the order
    const size_t count = std::min<size_t>(structure.races.size(), kMostReplays);
    Progress progress(context_, "replays that flip a pair", "replays");
    for (size_t i = 0; i < count && !context_.stopped(); ++i) {
      mode_.order = flip_of(structure, structure.races[i], "*");
      if (const auto step = first_difference()) return step;
      progress.update(i + 1, count);
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kMostReplays = 12;

  ReplayOptions replay_options(const Mode& mode) const {
    ReplayOptions o;
    o.mode = mode;
    o.inspect = false;
    o.threads = options_.threads;
    o.stop = [this] { return context_.stopped(); };
    return o;
  }

  std::optional<StepIndex> first_difference() const {
    std::optional<StepIndex> step;
    size_t at = 0;
    ReplayOptions o = replay_options(mode_);
    o.stop = [&] { return step.has_value() || context_.stopped(); };
    o.output = [&](const StepOutput& output) {
      if (!step && compare_step(golden_.at(at), output).first) step = output.step;
      ++at;
    };
    replay(trace_, o);
    return step;
  }

  const CommandContext& context_;
  const Trace& trace_;
  const ExploreTraceOptions& options_;
  Mode mode_;
  std::vector<StepOutput> golden_;
};

class TraceExplorer {
 public:
  TraceExplorer(const CommandContext& context, const Trace& trace, const Mode& mode,
                const ExploreTraceOptions& options, StepIndex step)
      : context_(context),
        options_(options),
        capture_(mode.capture),
        candidate_(trace, step, mode, options.threads) {
    out_.step = step;
    StepLab golden(trace, step, clean_mode(mode), options.threads);
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
    if (!out_.structure.races.empty())
      // A prefill runs eager in every mode: it is priced as the decode steps of the mode run.
      out_.price =
          price_fix(out_.structure.program,
                    capture_ == CaptureMode::graph ? Submission::graph : out_.structure.submission,
                    out_.structure.races, out_.repair, load_device(options_.device));
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
      run.order = flip_of(out_.structure, races[i], std::to_string(out_.step));
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
  CaptureMode capture_;
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

// One finding of each pair of ops, with how many there are in all layers.
std::pair<std::vector<Finding>, std::vector<uint64_t>> grouped(
    const std::vector<Finding>& findings) {
  std::vector<Finding> first;
  std::vector<uint64_t> counts;
  for (const Finding& f : findings) {
    const auto same = std::ranges::find_if(first, [&](const Finding& g) {
      return g.kind == f.kind && g.first.op == f.first.op && g.second.op == f.second.op;
    });
    if (same != first.end()) {
      ++counts[static_cast<size_t>(same - first.begin())];
      continue;
    }
    first.push_back(f);
    counts.push_back(1);
  }
  return {std::move(first), std::move(counts)};
}

std::string text_of(const std::string& path, const Mode& mode, const TraceExploration& x) {
  const StepStructure& s = x.structure;
  std::string out = "explored step " + std::to_string(x.step) + " of " + path + '\n';
  out += labelled("mode", describe(mode));
  out += labelled("program", with_thousands(s.program.commands.size()) + " commands on " +
                                 std::to_string(s.program.stream_count) + " streams");
  out += labelled("findings", s.findings.empty() ? "none" : with_thousands(s.findings.size()));
  const auto [first_of_kind, alike] = grouped(s.findings);
  out += findings_text(first_of_kind, alike);
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
  out += repair_text(s.program, s.races, x.repair);
  if (x.price) out += price_text(*x.price, !s.races.empty());
  return out;
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
  if (x.price) price_json(*x.price, json);
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
  if (!options.step) {
    StepLab lab(trace, *step, mode, options.threads);
    StepSearch search(context, trace, mode, options);
    step = search.run(lab.structure()).value_or(*step);
  }
  if (context.stopped()) throw Error(ErrorCode::environment, "stopped by a signal", path);
  TraceExplorer explorer(context, trace, mode, options, *step);
  const TraceExploration x = explorer.run();
  if (context.stopped()) throw Error(ErrorCode::environment, "stopped by a signal", path);
  emit(context, text_of(path, mode, x), json_of(path, mode, x));
  return x.witness.empty() && x.structure.findings.empty() ? 0 : 1;
}

}  // namespace redecode
