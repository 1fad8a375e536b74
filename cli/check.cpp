#include "cli/check.h"

#include <chrono>
#include <memory>
#include <optional>

#include "cli/check_litmus.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/price_text.h"
#include "cli/progress.h"
#include "cli/timeline_files.h"
#include "engine/decoder/plan_check.h"
#include "engine/model/factory.h"
#include "engine/repair/fix_price.h"
#include "traces/error.h"
#include "traces/thousands.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode check fleet.rdt --streams multi --capture graph\n"
    "  redecode check --model dsv4-flash --rows 64 --streams multi --capture graph\n"
    "  redecode check race.litmus";

struct CheckCommand {
  std::string trace, model;
  std::string require, price;
  PictureOptions pictures;
  bool certify = false, format = false;
  std::optional<uint32_t> rows, context_tokens;
  ModeOptions mode;
};

constexpr uint32_t kMostRows = 4096;
constexpr uint32_t kMostContextTokens = 1u << 20;

// What is checked: the steps of a trace, or one step that stands for a model.
struct Subject {
  std::string name;
  std::string model;
  EngineSettings settings;
  std::vector<Step> steps;
  std::optional<ModelIdentity> recorded;
};

struct CheckResult {
  Subject subject;
  Mode mode;
  uint64_t steps = 0, graph_steps = 0;
  PlanSize largest;
  PoolStats pool;
  uint64_t persistent_bytes = 0;
  std::vector<Finding> findings;
  std::vector<uint64_t> counts;
  Certificate certificate;
  std::optional<FixPrice> price;
  bool priced_races = false;
  std::string pictures;
  double seconds = 0;
  bool stopped = false;
};

void require_range(uint32_t value, uint32_t most, const char* flag) {
  if (value == 0 || value > most)
    throw Error(ErrorCode::usage, "must be 1 to " + with_thousands(most), flag);
}

// Every request is `context_tokens` long and about to decode; pages are its own.
Step decode_step(uint32_t rows, uint32_t context_tokens, const EngineSettings& settings) {
  const uint32_t pages = (context_tokens + settings.page_size - 1) / settings.page_size;
  Step step;
  step.phase = Phase::decode;
  for (const uint32_t bucket : settings.buckets)
    if (bucket >= rows && step.bucket == 0) step.bucket = bucket;
  for (RequestId r = 0; r < rows; ++r) {
    Arrival arrival;
    arrival.request = arrival.session = r;
    arrival.prompt_tokens = context_tokens;
    arrival.cached_tokens = context_tokens - 1;
    arrival.max_tokens = 1;
    step.arrivals.push_back(arrival);
    for (uint32_t i = 0; i < pages; ++i)
      step.page_changes.push_back({r, i, 1 + r * pages + i, true});
    const uint32_t position = context_tokens - 1;
    const uint32_t page = 1 + r * pages + position / settings.page_size;
    step.rows.push_back(
        {r, position, 0, page * settings.page_size + position % settings.page_size, true});
  }
  return step;
}

Subject subject_of_model(const CheckCommand& o) {
  const uint32_t rows = o.rows.value_or(64), context = o.context_tokens.value_or(1024);
  require_range(rows, kMostRows, "--rows");
  require_range(context, kMostContextTokens, "--context");
  SettingsRequest request;
  request.max_batch_rows = rows;
  request.buckets = default_buckets(rows);
  const EngineSettings plain = default_settings(o.model, request);
  if (context > plain.max_seq_len)
    throw Error(ErrorCode::usage,
                "the model holds " + with_thousands(plain.max_seq_len) + " tokens a request",
                "--context");
  const uint64_t pages = uint64_t{rows} * ((context + plain.page_size - 1) / plain.page_size) + 1;
  if (pages * plain.page_size > UINT32_MAX)
    throw Error(ErrorCode::usage,
                "that many rows of that length need more KV slots than 32 bits name", "--context");
  request.page_count = static_cast<uint32_t>(std::max<uint64_t>(pages, 2));
  Subject subject;
  subject.name = subject.model = o.model;
  subject.settings = default_settings(o.model, request);
  subject.steps.push_back(decode_step(rows, context, subject.settings));
  return subject;
}

Subject subject_of_trace(const CheckCommand& o, Mode& defaults) {
  if (o.rows || o.context_tokens)
    throw Error(ErrorCode::usage, "is for a model without a trace",
                o.rows ? "--rows" : "--context");
  Trace trace = load_trace(o.trace);
  defaults.index_key = trace.header.mode.index_key;
  defaults.topk = trace.header.mode.topk;
  Subject subject;
  subject.name = o.trace;
  subject.model = o.model.empty() ? trace.header.model.spec : o.model;
  subject.settings = trace.header.engine;
  subject.steps = std::move(trace.steps);
  subject.recorded = trace.header.model;
  return subject;
}

void check_config(const Subject& subject, const Model& model) {
  if (!subject.recorded || subject.recorded->config_digest == model.identity().config_digest)
    return;
  throw Error(ErrorCode::incomparable,
              "its configuration is " + digest_hex(model.identity().config_digest) +
                  ", the trace was recorded with " + digest_hex(subject.recorded->config_digest) +
                  " ('" + subject.recorded->spec + "')",
              "model '" + subject.model + "'");
}

std::vector<Finding> races_of_step(const PlannedStep& step) {
  return races_of(step.program, step.extents, step.submission);
}

// What was asked for beside the check, of the step that it kept.
void look_closer(const CheckCommand& o, const PlannedStep& step, CheckResult& result) {
  if (step.program.commands.empty()) return;
  if (!o.price.empty()) {
    const auto races = races_of_step(step);
    RepairOptions options;
    options.find_needless_waits = false;
    const Repair fix = repair(step.program, step.extents, step.submission, races, options);
    result.price = price_fix(step.program, step.submission, races, fix, load_device(o.price));
    result.priced_races = !races.empty();
  }
  if (o.pictures.any())
    result.pictures =
        write_pictures(o.pictures, step.program, step.submission, step.step, result.findings);
}

CheckResult check_subject(const CommandContext& context, const CheckCommand& o, Subject subject,
                          const Mode& mode) {
  const auto start = std::chrono::steady_clock::now();
  KernelTable kernels;
  const auto model =
      make_model(subject.model, subject.settings, mode.index_key, add_exact_kernels(kernels));
  check_config(subject, *model);
  PlanChecker checker(kernels, *model, mode);
  if (!o.price.empty() || o.pictures.any()) checker.keep_step();
  CheckResult result;
  Progress progress(context, "check", "steps");
  for (const Step& step : subject.steps) {
    result.stopped = context.stopped();
    if (result.stopped) break;
    checker.add(step);
    progress.update(checker.steps(), subject.steps.size());
  }
  result.subject = std::move(subject);
  result.mode = mode;
  result.steps = checker.steps();
  result.graph_steps = checker.graph_steps();
  result.largest = checker.largest();
  result.pool = checker.pool();
  result.persistent_bytes = checker.persistent_bytes();
  result.findings = checker.inspector().findings();
  result.certificate = checker.inspector().certificate();
  look_closer(o, checker.kept(), result);
  for (size_t i = 0; i < result.findings.size(); ++i)
    result.counts.push_back(checker.inspector().count(i));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::string result_text(const CheckResult& r) {
  std::string out = "checked " + r.subject.name + '\n';
  const PlanSize& p = r.largest;
  out += labelled("model", r.subject.model);
  out += labelled("mode", describe(r.mode));
  out += labelled("steps", with_thousands(r.steps) + ", " + with_thousands(r.graph_steps) +
                               " from a graph, " + tenths(r.seconds) + " s");
  out += labelled("program", with_thousands(p.commands) + " commands, " + with_thousands(p.nodes) +
                                 " nodes, " + with_thousands(p.edges) + " edges, " +
                                 std::to_string(p.streams) + " streams, " + with_thousands(p.rows) +
                                 " rows (the largest)");
  out += labelled("pool", with_thousands(r.pool.segment_bytes) + " bytes in " +
                              with_thousands(r.pool.segments) + " segments, for " +
                              with_thousands(p.transient_bytes) + " bytes of transients");
  out += labelled("persistent", with_thousands(r.persistent_bytes) + " bytes");
  out += labelled("findings", r.findings.empty() ? "none" : with_thousands(r.findings.size()));
  return out + findings_text(r.findings, r.counts);
}

std::string certificate_text(const CheckCommand& o, const CheckResult& r) {
  if (!o.certify && o.require.empty()) return {};
  if (!r.findings.empty()) return labelled("certificate", "none: there are findings");
  const std::string digest = digest_hex(r.certificate.digest);
  std::string out = labelled("certificate", digest + ", " + claim_of(r.certificate));
  if (!o.require.empty() && o.require != digest)
    out += labelled("", "NOT the required " + o.require + ": the programs or their places differ");
  return out;
}

std::string result_json(const CheckResult& r, bool certify) {
  const PlanSize& p = r.largest;
  JsonWriter json;
  json.begin_object();
  json.member("subject", r.subject.name).member("model", r.subject.model);
  json.key("mode").raw(mode_json(r.mode));
  json.member("steps", r.steps).member("graph_steps", r.graph_steps);
  json.key("program").begin_object();
  json.member("rows", p.rows).member("commands", p.commands).member("nodes", p.nodes);
  json.member("edges", p.edges).member("streams", p.streams);
  json.member("transient_bytes", p.transient_bytes);
  json.end_object();
  json.member("pool_segments", r.pool.segments).member("pool_bytes", r.pool.segment_bytes);
  json.member("persistent_bytes", r.persistent_bytes).member("seconds", r.seconds);
  findings_json(r.findings, r.counts, json);
  if (r.price) price_json(*r.price, json);
  if (certify) {
    json.key("certificate");
    if (r.findings.empty())
      json.begin_object()
          .member("digest", digest_hex(r.certificate.digest))
          .member("claim", claim_of(r.certificate))
          .member("programs", r.certificate.programs)
          .member("commands", r.certificate.commands)
          .member("accesses", r.certificate.accesses)
          .end_object();
    else
      json.null();
  }
  json.end_object();
  return json.take();
}

void refuse_what_does_not_run(const Mode& mode) {
  if (mode.backend == Backend::cuda)
    throw Error(ErrorCode::environment, "structure is checked without a device; use --backend sim",
                "--backend cuda");
  if (mode.kernels == KernelSet::fast)
    throw Error(ErrorCode::environment,
                "the sim backend has no fast kernel set; use --kernels exact", "--kernels fast");
}

int run_check(const CommandContext& context, const CheckCommand& o) {
  if (o.trace.empty() && o.model.empty())
    throw Error(ErrorCode::usage, "name a trace, or a model with --model", "check");
  if (o.format) return format_litmus_file(context, o.trace);
  if (is_litmus_path(o.trace)) return check_litmus_path(context, o.trace, o.pictures);
  refuse_what_does_not_run(o.mode.resolve());
  Mode defaults;
  Subject subject = o.trace.empty() ? subject_of_model(o) : subject_of_trace(o, defaults);
  const CheckResult result =
      check_subject(context, o, std::move(subject), o.mode.resolve(defaults));
  if (result.stopped)
    throw Error(ErrorCode::environment,
                "stopped by a signal after " + with_thousands(result.steps) + " steps",
                result.subject.name);
  const bool clean = result.findings.empty();
  emit(context,
       result_text(result) + (result.price ? price_text(*result.price, result.priced_races) : "") +
           result.pictures + certificate_text(o, result),
       result_json(result, o.certify || !o.require.empty()));
  const bool required =
      o.require.empty() || (clean && o.require == digest_hex(result.certificate.digest));
  return clean && required ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(
      app, context, "check",
      "Find hazards in a trace, a model or a litmus file without running a value", kExample);
  auto o = std::make_shared<CheckCommand>();
  command->add_option(
      "trace", o->trace,
      "Trace (.rdt), litmus file or folder of them; without, one decode step of --model");
  command->add_option("--model", o->model, "dsv4-flash and all that record takes");
  command->add_option("--rows", o->rows, "Model: rows of the step (64)");
  command->add_option("--context", o->context_tokens, "Model: tokens of every request (1024)");
  command->add_option("--price", o->price,
                      "Predict step times on a device: h200, b200 or a description file");
  command->add_option("--timeline", o->pictures.timeline,
                      "Write the step with the first finding, or the largest, for Perfetto");
  command->add_option("--svg", o->pictures.svg, "Draw the first finding");
  command->add_flag("--format", o->format, "Print a litmus file in one style, and nothing else");
  command->add_flag("--force", o->pictures.force, "Replace existing files");
  command->add_flag(
      "--certify", o->certify,
      "Say what a check without findings proves, with the digest of what was checked");
  command->add_option("--require", o->require,
                      "Exit 1 unless the certificate has this digest: for CI");
  o->mode.add_to(*command);
  on_run(command, context, [&context, o] { return run_check(context, *o); });
}

}  // namespace redecode
