#include "cli/record.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/live_session.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/record_proxy.h"
#include "cli/whole_number.h"
#include "recorder/tap.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode record -o fleet.rdt --workload agent --sessions 60 --rounds 4\n"
    "  redecode record -o conversation.rdt --workload mooncake --scale 16 --requests 100\n"
    "  redecode record -o live.rdt --proxy --upstream http://127.0.0.1:8000";

struct RecordOptions {
  std::string workload = "agent";
  std::string model = "dsv4-small";
  std::string output = "trace.rdt";
  std::string input;
  bool force = false;
  int threads = 1;
  std::optional<uint32_t> sessions, rounds, context_tokens, concurrency;  // agent
  std::optional<uint32_t> requests, scale;                                // arrivals
  std::optional<uint32_t> max_tokens;
  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, min_p;
  std::optional<int32_t> top_k;
  std::optional<uint32_t> page_size, page_count, max_batch_rows, chunk_rows;
  std::vector<uint32_t> buckets;
  ModeOptions mode;
  RecordProxyOptions proxy;
};

constexpr uint32_t kMostSessions = 1u << 20;

[[noreturn]] void usage(const std::string& message, const std::string& context) {
  throw Error(ErrorCode::usage, message, context);
}

template <class T>
void set(const std::optional<T>& from, T& to) {
  if (from) to = *from;
}

// Zero means "default" further down, so that a zero that was asked for must stop here.
uint32_t at_least_one(const std::optional<uint32_t>& value, const char* flag) {
  if (value && *value == 0) usage("must be at least 1", flag);
  return value.value_or(0);
}

void set_sampling(const RecordOptions& o, Sampling& sampling) {
  set(o.temperature, sampling.temperature);
  set(o.top_p, sampling.top_p);
  set(o.min_p, sampling.min_p);
  set(o.top_k, sampling.top_k);
}

WorkloadSpec workload_of(const RecordOptions& o) {
  WorkloadSpec spec = parse_workload(o.workload);
  const auto only_for = [&](bool fits, bool given, const char* flag) {
    if (given && !fits) usage("does not fit workload '" + o.workload + "'", flag);
  };
  const bool agent = spec.kind == WorkloadKind::agent;
  only_for(agent, o.sessions.has_value(), "--sessions");
  only_for(agent, o.rounds.has_value(), "--rounds");
  only_for(agent, o.context_tokens.has_value(), "--ctx");
  only_for(agent, o.concurrency.has_value(), "--concurrency");
  only_for(!agent, o.requests.has_value(), "--requests");
  only_for(!agent, o.scale.has_value(), "--scale");
  only_for(!agent, !o.input.empty(), "--input");
  set(o.sessions, spec.agent.sessions);
  set(o.rounds, spec.agent.rounds);
  set(o.context_tokens, spec.agent.context_tokens);
  set(o.concurrency, spec.agent.concurrency);
  set(o.max_tokens, spec.agent.max_tokens);
  set(o.seed, spec.agent.seed);
  set_sampling(o, spec.agent.sampling);
  set(o.requests, spec.arrival.rows);
  set(o.scale, spec.arrival.scale);
  set(o.max_tokens, spec.arrival.output_cap);
  set(o.seed, spec.arrival.seed);
  set_sampling(o, spec.arrival.sampling);
  if (o.requests) at_least_one(o.requests, "--requests");
  if (spec.agent.sessions > kMostSessions)
    usage("at most " + with_thousands(kMostSessions) + " sessions", "--sessions");
  return spec;
}

SettingsRequest settings_of(const RecordOptions& o) {
  SettingsRequest request;
  request.page_size = at_least_one(o.page_size, "--page-size");
  request.page_count = at_least_one(o.page_count, "--page-count");
  request.max_batch_rows = at_least_one(o.max_batch_rows, "--max-batch");
  request.buckets = o.buckets;
  return request;
}

std::string summary_text(const RecordOptions& o, const LiveRecording& r, uint64_t bytes) {
  const LiveProgress& t = r.result.totals;
  const uint64_t too_long = t.ends[static_cast<size_t>(RequestEnd::too_long)];
  const uint64_t failed = t.ends[static_cast<size_t>(RequestEnd::failed)];
  std::string out = "recorded " + o.output;
  out += r.result.end == LiveEnd::stopped ? ", stopped early\n" : "\n";
  out += labelled("workload", r.header.workload);
  out += labelled("model",
                  r.header.model.spec + ", weights " + digest_hex(r.header.model.weights_digest));
  out += labelled("mode", describe(r.header.mode));
  out += labelled("steps",
                  with_thousands(t.steps) + ", " + with_thousands(r.graph_steps) + " from a graph");
  out += labelled("rows", with_thousands(r.rows));
  std::string requests =
      with_thousands(t.requests_submitted) + ", " + with_thousands(t.requests_finished) + " ended";
  if (too_long != 0) requests += ", " + with_thousands(too_long) + " too long for the engine";
  if (failed != 0) requests += ", " + with_thousands(failed) + " failed";
  out += labelled("requests", requests);
  out += labelled("tokens", with_thousands(t.output_tokens) + ", " +
                                tenths(static_cast<double>(t.output_tokens) / r.seconds) + "/s");
  out += labelled("cached tokens", with_thousands(t.cached_tokens));
  out += labelled("preemptions", with_thousands(t.preemptions));
  const double per_step =
      t.steps == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(t.steps);
  out += labelled("bytes", with_thousands(bytes) + ", " + tenths(per_step) + " a step");
  return out;
}

std::string summary_json(const RecordOptions& o, const LiveRecording& r, uint64_t bytes,
                         Digest trace_digest) {
  const LiveProgress& t = r.result.totals;
  JsonWriter json;
  json.begin_object();
  json.member("trace", o.output).member("trace_digest", digest_hex(trace_digest));
  json.member("workload", r.header.workload).member("model", r.header.model.spec);
  json.key("mode").raw(mode_json(r.header.mode));
  json.member("stopped", r.result.end == LiveEnd::stopped);
  json.member("steps", t.steps).member("graph_steps", r.graph_steps).member("rows", r.rows);
  json.member("requests", t.requests_submitted).member("requests_ended", t.requests_finished);
  json.member("requests_too_long", t.ends[static_cast<size_t>(RequestEnd::too_long)]);
  json.member("requests_failed", t.ends[static_cast<size_t>(RequestEnd::failed)]);
  json.member("output_tokens", t.output_tokens).member("cached_tokens", t.cached_tokens);
  json.member("preemptions", t.preemptions).member("bytes", bytes);
  json.member("seconds", r.seconds);
  json.end_object();
  return json.take();
}

// The writer, and what is asked of it once the tap has taken it.
class TraceTarget final : public TapTarget {
 public:
  struct Totals {
    uint64_t bytes = 0;
    Digest digest = 0;
  };
  TraceTarget(TraceWriter writer, Totals& totals) : writer_(std::move(writer)), totals_(totals) {}
  void write(const Step& step) override { writer_.write(step); }
  void write(const StepOutput& output) override { writer_.write(output); }
  void write(const Gap& gap) override { writer_.write(gap); }
  void flush() override { writer_.flush(); }
  void close() override {
    writer_.close();
    totals_ = {writer_.bytes_written(), writer_.trace_digest()};
  }

 private:
  TraceWriter writer_;
  Totals& totals_;
};

int run_record(const CommandContext& context, const RecordOptions& o) {
  if (o.proxy.on) return run_record_proxy(context, o.proxy, o.output, o.force);
  if (!o.proxy.upstream.empty()) usage("needs --proxy", "--upstream");
  LiveRequest request;
  request.model = o.model;
  request.workload = workload_of(o);
  request.mode = o.mode.resolve();
  request.batcher = live_options(o.model, settings_of(o), at_least_one(o.chunk_rows, "--chunk"));
  request.rows = o.input;
  request.threads = o.threads;
  request.environment = environment_entries();
  if (!o.force && std::filesystem::exists(o.output))
    usage("the file exists; --force replaces it", o.output);
  Progress progress(context, "record", "steps");
  request.progress = [&](const LiveProgress& p) { progress.update(p.steps, 0); };
  request.stop = [&] { return context.stopped(); };

  TraceTarget::Totals totals;
  std::unique_ptr<Tap> tap;
  const LiveRecording recording = record_live(request, [&](const TraceHeader& header) -> StepSink& {
    TapOptions options;
    options.flush_every_steps = 256;
    tap = std::make_unique<Tap>(
        std::make_unique<TraceTarget>(TraceWriter(o.output, header, {}, o.force), totals), options);
    return *tap;
  });
  tap->close();
  emit(context, summary_text(o, recording, totals.bytes),
       summary_json(o, recording, totals.bytes, totals.digest));
  return 0;
}

void refuse_what_a_proxy_ignores(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string& group = option->get_group();
    if (option->count() != 0 && (group == "Traffic" || group == "Engine" || group == "Mode"))
      usage("says how our own engine serves; leave it out beside --proxy", option->get_name());
  }
}

void add_traffic(CLI::App* command, RecordOptions& o) {
  const char* group = "Traffic";
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command->add_option(flag, value, help)->group(group);
  };
  add("--workload", o.workload,
      "agent, mooncake, azure or requests, with key=value words after it");
  add("--sessions", o.sessions, "Agent: sessions");
  add("--rounds", o.rounds, "Agent: requests a session");
  add("--ctx", o.context_tokens, "Agent: prompt tokens of the first round");
  add("--concurrency", o.concurrency, "Agent: sessions at once; 0: all");
  add("--requests", o.requests, "Arrivals: only the first so many");
  add("--scale", o.scale, "Arrivals: lengths are divided by this");
  add("--input", o.input,
      "Arrivals: a file in place of the built-in sample; requests: a trace (.rdt)");
  add("--max-tokens", o.max_tokens, "Output tokens of a request");
  add("--seed", o.seed, "Of prompts and of sampling")->check(whole_number());
  add("--temperature", o.temperature, "Sampling; 0 is argmax");
  add("--top-k-sampling", o.top_k, "Sampling: keep the k likeliest; 0: all");
  add("--top-p", o.top_p, "Sampling: keep this much probability");
  add("--min-p", o.min_p, "Sampling: least share of the largest probability");
}

void add_engine(CLI::App* command, RecordOptions& o) {
  const char* group = "Engine";
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command->add_option(flag, value, help)->group(group);
  };
  add("--model", o.model, "dsv4-small, llama-small, llama-100m or llama2c:PATH; :seed=N");
  add("--threads", o.threads, "Of kernels; without effect on any bit")->check(CLI::Range(1, 1024));
  add("--page-size", o.page_size, "Tokens a KV page");
  add("--page-count", o.page_count, "KV pages, the dummy page included");
  add("--max-batch", o.max_batch_rows, "Rows of a decode step");
  add("--chunk", o.chunk_rows, "Rows of a prefill step");
  add("--buckets", o.buckets, "Padded sizes of decode steps, ascending: 1,2,4")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace

void add_record(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      add_command(app, context, "record", "Serve a workload and write its trace", kExample);
  auto options = std::make_shared<RecordOptions>();
  command->add_option("-o,--output", options->output, "Trace to write (.rdt)")
      ->capture_default_str();
  command->add_flag("--force", options->force, "Replace an existing file");
  add_traffic(command, *options);
  add_engine(command, *options);
  options->mode.add_to(*command);
  add_proxy_options(*command, options->proxy);
  on_run(command, context, [&context, command, options] {
    if (options->proxy.on) refuse_what_a_proxy_ignores(*command);
    return run_record(context, *options);
  });
}

}  // namespace redecode
