#include "cli/replay.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/live_session.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/recorded_check.h"
#include "cli/step_range.h"
#include "replayer/replay.h"
#include "traces/error.h"
#include "traces/run_file.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode replay fleet.rdt -o golden.rdr\n"
    "  redecode replay fleet.rdt -o run.rdr --streams multi --capture graph --order seed:7";

struct ReplayCommand {
  std::string trace, output, steps, model;
  bool force = false, no_check = false, recorded = false, canary = false;
  bool across_gaps = false, self_check = false;
  int threads = 1;
  ModeOptions mode;
};

// A trace's own kernels, on one stream in fifo order.
Mode golden_mode(const TraceHeader& header) {
  Mode mode;
  mode.index_key = header.mode.index_key;
  mode.topk = header.mode.topk;
  return mode;
}

class RunFile {
 public:
  RunFile(std::string path, RunHeader header, bool overwrite)
      : path_(std::move(path)), header_(std::move(header)), overwrite_(overwrite) {
    if (!path_.empty() && !overwrite_ && std::filesystem::exists(path_))
      throw Error(ErrorCode::usage, "the file exists; --force replaces it", path_);
  }
  // The file is created with its first record: a replay that cannot start leaves none.
  void write(const StepOutput& output) {
    if (!path_.empty()) writer().write(output);
  }
  void close(const ReplayResult& result) {
    if (path_.empty()) return;
    for (const Finding& finding : result.findings) writer().write(finding);
    if (!result.stopped)
      writer().close();
    else
      writer().flush();
  }

 private:
  RunWriter& writer() {
    if (!writer_) writer_.emplace(path_, header_, WriterOptions{}, overwrite_);
    return *writer_;
  }
  std::string path_;
  RunHeader header_;
  bool overwrite_;
  std::optional<RunWriter> writer_;
};

std::string requests_text(const std::vector<RequestId>& requests) {
  constexpr size_t kMostNamed = 8;
  std::string out = requests.size() == 1 ? "request " : "requests ";
  for (size_t i = 0; i < std::min(requests.size(), kMostNamed); ++i)
    out += (i > 0 ? ", " : "") + std::to_string(requests[i]);
  if (requests.size() > kMostNamed)
    out += " and " + with_thousands(requests.size() - kMostNamed) + " more";
  return out;
}

std::string result_text(const Trace& trace, const ReplayCommand& o, const ReplayResult& r,
                        double seconds, const RecordedCheck& recorded) {
  std::string out = "replayed " + o.trace;
  if (!o.output.empty()) out += " into " + o.output;
  out += '\n';
  out += labelled("model", r.header.model.spec);
  out += labelled("mode", describe(r.header.mode));
  std::string steps = with_thousands(r.steps) + ", " + with_thousands(r.graph_steps) +
                      " from a graph, " + tenths(static_cast<double>(r.steps) / seconds) + "/s";
  if (r.restored_steps != 0) steps += ", after " + with_thousands(r.restored_steps) + " restored";
  out += labelled("steps", steps);
  out += labelled("tokens", with_thousands(r.outputs) + ", " +
                                tenths(static_cast<double>(r.outputs) / seconds) + "/s");
  out += labelled("digest", digest_hex(r.digest));
  if (trace.end == FileEnd::cut)
    out += labelled("trace", "cut at byte " + with_thousands(trace.cut_offset_bytes));
  if (o.recorded) out += labelled("recorded", recorded.text());
  for (const Gap& gap : trace.gaps)
    if (o.across_gaps) out += labelled("gap", to_text(gap));
  if (!r.left_out.empty())
    out += labelled("left out", requests_text(r.left_out) + ": not whole since a gap, " +
                                    with_thousands(r.rows_left_out) + " rows");
  if (o.self_check) out += labelled("self check", "every step twice, the same choices");
  if (o.no_check)
    out += labelled("findings", "not checked");
  else
    out += labelled("findings", r.findings.empty() ? "none" : with_thousands(r.findings.size()));
  return out + findings_text(r.findings, r.finding_counts);
}

std::string result_json(const Trace& trace, const ReplayCommand& o, const ReplayResult& r,
                        double seconds, const RecordedCheck& recorded) {
  JsonWriter json;
  json.begin_object();
  json.member("trace", o.trace).member("trace_digest", digest_hex(r.header.trace_digest));
  json.member("trace_cut", trace.end == FileEnd::cut);
  json.key("run");
  if (o.output.empty())
    json.null();
  else
    json.value(o.output);
  json.member("model", r.header.model.spec);
  json.key("mode").raw(mode_json(r.header.mode));
  json.member("digest", digest_hex(r.digest));
  json.member("steps", r.steps).member("graph_steps", r.graph_steps);
  json.member("restored_steps", r.restored_steps).member("rows", r.rows);
  json.member("rows_left_out", r.rows_left_out).key("left_out").begin_array();
  for (const RequestId request : r.left_out) json.value(request);
  json.end_array();
  json.member("tokens", r.outputs).member("seconds", seconds).member("checked", !o.no_check);
  if (o.recorded) recorded.write_json(json.key("recorded"));
  findings_json(r.findings, r.finding_counts, json);
  json.end_object();
  return json.take();
}

RunHeader header_before(const Trace& trace, const ReplayCommand& o, const Mode& mode) {
  ModelIdentity model = trace.header.model;
  if (!o.model.empty()) model.spec = o.model;
  RunHeader header = run_header(trace, mode, model);
  header.environment = environment_entries();
  return header;
}

int run_replay(const CommandContext& context, const ReplayCommand& o) {
  ReplayOptions options;
  options.range = parse_step_range(o.steps);
  o.mode.resolve();  // a wrong flag is said before a file is read
  const Trace trace = load_trace(o.trace);
  options.mode = o.mode.resolve(golden_mode(trace.header));
  options.model = o.model;
  options.threads = o.threads;
  options.canary = o.canary;
  options.across_gaps = o.across_gaps;
  options.self_check = o.self_check;
  options.inspect = !o.no_check;
  check_memory(o.model.empty() ? trace.header.model.spec : o.model, trace.header.engine,
               options.mode);
  RunFile run(o.output, header_before(trace, o, options.mode), o.force);
  RecordedCheck recorded(trace);
  options.output = [&](const StepOutput& output) {
    run.write(output);
    if (o.recorded) recorded.add(output);
  };
  options.stop = [&] { return context.stopped(); };
  Progress progress(context, "replay", "steps");
  options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };

  const auto start = std::chrono::steady_clock::now();
  const ReplayResult result = replay(trace, options);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.close(result);
  if (result.stopped)
    throw Error(ErrorCode::environment,
                "stopped by a signal after " + with_thousands(result.steps) +
                    " steps; the run is readable so far",
                o.output.empty() ? o.trace : o.output);
  emit(context, result_text(trace, o, result, seconds, recorded),
       result_json(trace, o, result, seconds, recorded));
  if (o.recorded && !recorded.compared())
    throw Error(ErrorCode::incomparable, "no outputs were recorded", o.trace);
  return result.findings.empty() && recorded.same() ? 0 : 1;
}

}  // namespace

void add_replay(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      add_command(app, context, "replay", "Decode a trace again in a chosen mode", kExample);
  auto o = std::make_shared<ReplayCommand>();
  command->add_option("trace", o->trace, "Trace (.rdt)")->required();
  command->add_option("-o,--output", o->output, "Run to write (.rdr); without, only the digest");
  command->add_option("--steps", o->steps, "Only steps A..B, both inclusive");
  command->add_option("--model", o->model, "In place of the name in the trace, e.g. another path");
  command->add_option("--threads", o->threads, "Of kernels; without effect on any bit")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--force", o->force, "Replace an existing file");
  command->add_flag("--check-recorded", o->recorded,
                    "Compare with the outputs in the trace; exit 1 if any bit differs");
  command->add_flag("--across-gaps", o->across_gaps,
                    "Go on after lost steps; requests that ran before them are left out");
  command->add_flag("--self-check", o->self_check,
                    "Decode every step twice: the choices offered must be the same");
  command->add_flag("--canary", o->canary,
                    "Compare all KV pages before and after each step: which may it write?");
  command->add_flag("--no-check", o->no_check, "Leave the structural checks out");
  o->mode.add_to(*command);
  on_run(command, context, [&context, o] { return run_replay(context, *o); });
}

}  // namespace redecode
