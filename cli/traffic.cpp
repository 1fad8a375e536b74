#include "cli/traffic.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "cli/descriptors.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/whole_number.h"
#include "compare/interval.h"
#include "recorder/http/load.h"
#include "recorder/http/proxy.h"
#include "traces/byte_source.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode traffic --target http://127.0.0.1:8000 --sessions 60 --rounds 4 --save good.json\n"
    "  redecode traffic --target http://127.0.0.1:8001 --sessions 60 --rounds 4 --expect "
    "good.json\n"
    "  redecode traffic --target http://127.0.0.1:8000 --arrivals conversation.jsonl --speed 10";

constexpr uint64_t kKeyFileBytes = 65536;

struct TrafficOptions {
  std::string target, arrivals, save, expect, check, api_key_file;
  std::optional<uint32_t> sessions, rounds, context_tokens, closed_loop, requests, scale;
  std::optional<uint32_t> concurrency, max_tokens;
  std::optional<double> speed;
  uint32_t token_bytes = 1;
  uint32_t timeout_s = 600, for_s = 0;
  bool stream = true;
  LoadAsk ask;
  LoadOptions load;
};

[[noreturn]] void usage(const std::string& message, const std::string& context) {
  throw Error(ErrorCode::usage, message, context);
}

std::string read_key(const std::string& path) {
  std::string key = read_text_file(path, kKeyFileBytes);
  key = key.substr(0, key.find_first_of("\r\n"));
  for (const char c : key)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) > '~')
      throw Error(ErrorCode::corrupt, "a key is printable ASCII without spaces", path);
  if (key.empty()) throw Error(ErrorCode::corrupt, "the first line holds no key", path);
  return key;
}

std::unique_ptr<LoadPlan> agent_plan(const TrafficOptions& o) {
  for (const auto& [given, flag] : {std::pair(o.speed.has_value(), "--speed"),
                                    {o.closed_loop.has_value(), "--closed-loop"},
                                    {o.requests.has_value(), "--requests"},
                                    {o.scale.has_value(), "--scale"}})
    if (given) usage("needs --arrivals FILE", flag);
  AgentLoadOptions agent;
  agent.sessions = o.sessions.value_or(agent.sessions);
  agent.rounds = o.rounds.value_or(agent.rounds);
  agent.context_tokens = o.context_tokens.value_or(agent.context_tokens);
  agent.token_bytes = o.token_bytes;
  agent.ask = o.ask;
  return make_agent_load(agent);
}

std::unique_ptr<LoadPlan> arrival_plan(const TrafficOptions& o) {
  for (const auto& [given, flag] : {std::pair(o.sessions.has_value(), "--sessions"),
                                    {o.rounds.has_value(), "--rounds"},
                                    {o.context_tokens.has_value(), "--ctx"}})
    if (given) usage("does not fit --arrivals", flag);
  ArrivalLoadOptions arrivals;
  arrivals.requests = o.requests.value_or(0);
  arrivals.scale = o.scale.value_or(1);
  arrivals.token_bytes = o.token_bytes;
  arrivals.max_tokens_given = o.max_tokens.has_value();
  arrivals.ask = o.ask;
  return load_arrivals(o.arrivals, arrivals);
}

// Options as they were given become those of the parts.
void resolve(TrafficOptions& o) {
  parse_http_url(o.target, "--target", o.load.host, o.load.port);
  if (!o.api_key_file.empty()) o.load.api_key = read_key(o.api_key_file);
  o.ask.stream = o.stream;
  if (o.max_tokens) o.ask.max_tokens = *o.max_tokens;
  o.load.seed = o.ask.seed;
  o.load.ask_model = o.ask.model.empty();
  o.load.timeout_ms = o.timeout_s * 1000;
  o.load.repeat_ms = o.for_s * 1000;
  if (o.for_s != 0 && o.load.keep_answers)
    usage("keeps no answers; use --check-answers", "--for-s");
  o.load.keep_answers = !o.save.empty() || !o.expect.empty();
  o.load.speed = o.speed.value_or(1.0);
  o.load.time_true = !o.arrivals.empty() && !o.closed_loop;
  if (o.for_s != 0 && o.load.time_true)
    usage("has no times to start over; use --closed-loop", "--for-s");
  if (o.closed_loop && o.speed) usage("does not fit --closed-loop", "--speed");
  if (o.closed_loop && o.concurrency) usage("does not fit --closed-loop", "--concurrency");
  // Due times bound what is under way; sessions all run at once, unless told otherwise.
  o.load.concurrency = kMostLoadConnections;
  if (o.closed_loop) o.load.concurrency = *o.closed_loop;
  if (o.concurrency) o.load.concurrency = *o.concurrency;
}

std::string times_text(const DurationHistogram& times) {
  if (times.count() == 0) return "none";
  const auto ms = [&](double share) { return tenths(static_cast<double>(times.at(share)) * 1e-3); };
  return "p50 " + ms(0.5) + ", p90 " + ms(0.9) + ", p99 " + ms(0.99) + " ms";
}

std::string counts_text(const LoadReport& r) {
  std::string out = with_thousands(r.count(LoadEnd::ok)) + " ok";
  for (size_t i = 1; i < kLoadEnds; ++i)
    if (r.ends[i] != 0)
      out += ", " + with_thousands(r.ends[i]) + " " + std::string(to_text(static_cast<LoadEnd>(i)));
  if (r.http_errors.empty()) return out;
  out += " (status";
  for (const auto& [status, count] : r.http_errors)
    out += " " + std::to_string(status) + ": " + with_thousands(count);
  return out + ")";
}

double per_second(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string checks_text(const AnswerChecks& c) {
  if (c == AnswerChecks{}) return {};
  std::string text = with_thousands(c.whole) + " whole and " + with_thousands(c.parts) +
                     " parts checked, " + with_thousands(c.wrong) + " wrong";
  if (c.unknown != 0) text += ", " + with_thousands(c.unknown) + " not expected at all";
  std::string out = labelled("answers", text);
  if (c.wrong != 0) out += labelled("first wrong", one_line(c.first_wrong));
  return out;
}

std::string report_text(const LoadReport& r, const std::string& compared) {
  std::string out = r.stopped ? "stopped early\n" : "";
  out += labelled("requests", counts_text(r));
  out += labelled("sessions", with_thousands(r.chains_completed) + " completed, " +
                                  with_thousands(r.chains_cut) + " cut");
  if (!r.first_trouble.empty()) out += labelled("first trouble", one_line(r.first_trouble));
  out += checks_text(r.checks);
  out += labelled("first token", times_text(r.first_token_us));
  out += labelled("between tokens", times_text(r.between_tokens_us));
  out += labelled("end to end", times_text(r.whole_us));
  if (r.late_us.count() != 0) out += labelled("sent late by", times_text(r.late_us));
  out += labelled("tokens", with_thousands(r.output_tokens) + " out, " +
                                with_thousands(r.prompt_tokens) + " in, " +
                                tenths(per_second(r.output_tokens, r.seconds)) + "/s");
  out += labelled("seconds", tenths(r.seconds));
  if (!compared.empty()) out += compared + "\n";
  return out;
}

void times_json(const char* name, const DurationHistogram& times, JsonWriter& json) {
  json.key(name).begin_object().member("count", times.count()).member("p50", times.at(0.5));
  json.member("p90", times.at(0.9)).member("p99", times.at(0.99)).member("max", times.most_us());
  json.end_object();
}

struct Compared {
  AnswerComparison answers;
  RateInterval interval;
  std::string text;
};

std::string report_json(const LoadReport& r, const std::optional<Compared>& compared) {
  JsonWriter json;
  json.begin_object().member("requests", r.requests()).member("stopped", r.stopped);
  json.key("ends").begin_object();
  for (size_t i = 0; i < kLoadEnds; ++i) json.member(to_text(static_cast<LoadEnd>(i)), r.ends[i]);
  json.end_object().key("http_errors").begin_object();
  for (const auto& [status, count] : r.http_errors) json.member(std::to_string(status), count);
  json.end_object();
  json.member("sessions_completed", r.chains_completed).member("sessions_cut", r.chains_cut);
  json.member("first_trouble", r.first_trouble).member("model", r.model);
  json.key("checked").begin_object().member("whole", r.checks.whole);
  json.member("parts", r.checks.parts).member("wrong", r.checks.wrong);
  json.member("unknown", r.checks.unknown).member("first_wrong", r.checks.first_wrong);
  json.end_object();
  times_json("first_token_us", r.first_token_us, json);
  times_json("between_tokens_us", r.between_tokens_us, json);
  times_json("end_to_end_us", r.whole_us, json);
  times_json("late_us", r.late_us, json);
  json.member("output_tokens", r.output_tokens).member("prompt_tokens", r.prompt_tokens);
  json.member("output_tokens_per_s", per_second(r.output_tokens, r.seconds));
  json.member("seconds", r.seconds);
  if (compared) {
    const AnswerComparison& c = compared->answers;
    json.key("compared").begin_object().member("sessions", c.sessions);
    json.member("differing", c.differing).member("not_compared", c.not_compared);
    json.member("lower", compared->interval.lower).member("upper", compared->interval.upper);
    if (c.differing != 0)
      json.member("first_session", c.first_session).member("first_round", c.first_round);
    json.end_object();
  }
  json.end_object();
  return json.take();
}

void save(const std::string& path, const std::vector<LoadAnswer>& answers) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << answers_json(answers);
  out.close();
  if (!out) throw Error(ErrorCode::environment, "cannot write the answers", path);
}

Compared compare(const std::string& path, const std::vector<LoadAnswer>& got) {
  const auto expected = parse_answers(read_text_file(path, kMostAnswersBytes), path);
  Compared out;
  out.answers = compare_answers(expected, got);
  out.interval = clopper_pearson(out.answers.differing, out.answers.sessions);
  out.text = comparison_text(out.answers, out.interval.lower, out.interval.upper);
  return out;
}

int run_traffic(const CommandContext& context, TrafficOptions o) {
  resolve(o);
  if (!o.expect.empty() && !std::filesystem::exists(o.expect))
    throw Error(ErrorCode::missing, "no such file", o.expect);
  std::optional<AnswerBook> book;
  if (!o.check.empty())
    o.load.book = &book.emplace(parse_answers(read_text_file(o.check, kMostAnswersBytes), o.check));
  raise_descriptor_limit();
  const std::unique_ptr<LoadPlan> plan = o.arrivals.empty() ? agent_plan(o) : arrival_plan(o);
  LoadReport report;
  {
    Progress progress(context, "traffic", "requests");
    report = run_load(
        o.load, *plan, [&] { return context.stopped(); },
        [&](uint64_t done, uint64_t total) { progress.update(done, total); });
  }
  if (report.count(LoadEnd::no_answer) != 0 &&
      report.count(LoadEnd::no_answer) == report.requests())
    throw Error(ErrorCode::environment, report.first_trouble + "; is the server up?", o.target);
  if (!o.save.empty()) save(o.save, report.answers);
  std::optional<Compared> compared;
  if (!o.expect.empty()) compared = compare(o.expect, report.answers);
  emit(context, report_text(report, compared ? compared->text : std::string()),
       report_json(report, compared));
  if (book && report.checks.whole == 0)
    throw Error(ErrorCode::incomparable, "no answer could be checked", o.check);
  if (report.checks.wrong + report.checks.unknown != 0) return 1;
  if (!compared) return 0;
  if (compared->answers.sessions == 0)
    throw Error(ErrorCode::incomparable, "no session could be compared", o.expect);
  return compared->answers.differing != 0 ? 1 : 0;
}

void add_requests(CLI::App& command, TrafficOptions& o) {
  const auto add = [&](const char* group) {
    return [&command, group](const char* flag, auto& value, const char* help) {
      return command.add_option(flag, value, help)->group(group);
    };
  };
  const auto agent = add("Agent sessions");
  agent("--sessions", o.sessions, "Sessions (60)");
  agent("--rounds", o.rounds, "Requests a session (4)");
  agent("--ctx", o.context_tokens, "Prompt tokens of the first round (300)");
  const auto arrivals = add("Arrivals");
  arrivals("--arrivals", o.arrivals, "Mooncake .jsonl, Azure .csv, or exchanges of a .rdt");
  arrivals("--speed", o.speed, "So many times as fast as they were (1)")
      ->check(CLI::PositiveNumber);
  arrivals("--closed-loop", o.closed_loop, "So many at once, whatever their times");
  arrivals("--requests", o.requests, "Only the first so many");
  arrivals("--scale", o.scale, "Lengths are divided by this");
  const auto both = add("Requests");
  both("--model", o.ask.model, "Model to ask for; else the first that the server lists");
  both("--concurrency", o.concurrency, "Connections at once (all sessions, at most 2,000)");
  both("--max-tokens", o.max_tokens, "Output tokens of a request; with --arrivals: at most");
  both("--token-bytes", o.token_bytes, "Bytes of text that make a token of a prompt")
      ->check(CLI::Range(1, 64));
  command.add_flag("--stream,!--no-stream", o.stream, "Streamed answers (default)")
      ->group("Requests");
  both("--temperature", o.ask.sampling.temperature, "Sampling; 0 is argmax")
      ->check(CLI::NonNegativeNumber);
  both("--top-p", o.ask.sampling.top_p, "Sampling: keep this much probability")
      ->check(CLI::Range(0.0, 1.0));
  both("--seed", o.ask.seed, "Of prompts, sampling and disconnects")->check(whole_number());
  both("--api-key-file", o.api_key_file, "Its first line is sent as bearer token");
  both("--for-s", o.for_s, "Start all over again until so many seconds have passed")
      ->check(CLI::Range(1, 86400));
  both("--timeout-s", o.timeout_s, "Of one request")->check(CLI::Range(1, 86400));
}

}  // namespace

void add_traffic(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, context, "traffic",
                                  "Send traffic to a server, count and measure answers", kExample);
  auto options = std::make_shared<TrafficOptions>();
  TrafficOptions& o = *options;
  command->add_option("--target", o.target, "The server: http://HOST:PORT")->required();
  add_requests(*command, o);
  command->add_option("--save", o.save, "Write the answers to this file")->group("Answers");
  command->add_option("--expect", o.expect, "Compare with saved answers; exit 1 if any differs")
      ->group("Answers");
  command
      ->add_option("--check-answers", o.check,
                   "Each answer, and what came of each that ended early, must be as in this file "
                   "of --save; exit 1 if any is not")
      ->group("Answers");
  command
      ->add_option("--slow-reader", o.load.slow_reader_bytes_per_s,
                   "Read answers at so many bytes a second")
      ->group("Hostile clients");
  command->add_option("--slow-percent", o.load.slow_percent, "Of the requests, with --slow-reader")
      ->group("Hostile clients")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--disconnect-rate", o.load.disconnect_percent,
                   "Percent of the requests that are dropped before or early in their answers")
      ->group("Hostile clients")
      ->check(CLI::Range(0.0, 100.0));
  on_run(command, context, [&context, options] { return run_traffic(context, *options); });
}

}  // namespace redecode
