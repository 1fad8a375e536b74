#include "cli/stress_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>

#include "cli/jobs.h"
#include "compare/interval.h"
#include "compare/sessions.h"
#include "replayer/replay.h"
#include "traces/json_writer.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Sessions with a row in a step that was not replayed.
uint32_t unfinished_sessions(const Trace& trace, const SessionMap& map, StepIndex first_missing) {
  std::set<SessionId> open;
  for (const Step& step : trace.steps)
    if (step.index >= first_missing)
      for (const Row& row : step.rows)
        if (const auto place = map.find(row.request)) open.insert(place->session);
  return static_cast<uint32_t>(open.size());
}

StressSeed run_seed(const StressOptions& options, const Trace& trace,
                    const std::vector<StepOutput>& golden, uint64_t seed,
                    const std::function<bool()>& stop) {
  const auto start = std::chrono::steady_clock::now();
  StressSeed out;
  out.seed = seed;
  const SessionMap map(trace.steps);
  SessionCounter counter{map};
  size_t at = 0;
  bool timed_out = false;
  ReplayOptions o;
  o.mode = options.mode;
  o.mode.order = options.order_kind + ":" + std::to_string(seed);
  o.inspect = false;
  o.stop = [&] {
    timed_out = options.timeout_s > 0.0 && seconds_since(start) > options.timeout_s;
    return timed_out || (stop && stop());
  };
  o.output = [&](const StepOutput& output) {
    const StepOutput& expected = golden.at(at++);
    const StepDifference difference = compare_step(expected, output);
    counter.add(expected, difference);
    if (difference.first && !out.first_step) out.first_step = output.step;
  };
  const ReplayResult run = replay(trace, o);
  const SessionSummary s = counter.summary();
  out.sessions = static_cast<uint32_t>(s.sessions.size());
  out.max_rounds = s.max_rounds_reached;
  out.corrupted = s.corrupted;
  out.error = s.errors;
  if (timed_out && at < trace.steps.size())
    out.timeout = unfinished_sessions(trace, map, trace.steps[at].index);
  out.max_rounds -= std::min(out.max_rounds, out.timeout);
  out.tokens = run.outputs;
  out.digest = run.digest;
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace

StressResult run_stress(const StressOptions& options,
                        const std::function<void(const StressSeed&)>& done,
                        const std::function<bool()>& stop) {
  const auto start = std::chrono::steady_clock::now();
  const Trace trace = record_to_memory(options.live);
  std::vector<StepOutput> golden;
  ReplayOptions golden_options;
  golden_options.mode.index_key = options.mode.index_key;
  golden_options.mode.topk = options.mode.topk;
  golden_options.mode.feedback = options.mode.feedback;
  golden_options.inspect = false;
  golden_options.stop = stop;
  golden_options.output = [&](const StepOutput& o) { golden.push_back(o); };
  const ReplayResult golden_run = replay(trace, golden_options);
  StressResult result;
  result.golden = golden_run.digest;
  std::mutex guard;
  run_jobs(options.seeds, options.threads, [&](size_t i) {
    if (stop && stop()) return;
    const StressSeed seed = run_seed(options, trace, golden, options.first_seed + i, stop);
    if (stop && stop()) return;
    const std::lock_guard lock(guard);
    result.seeds.push_back(seed);
    if (done) done(seed);
  });
  std::ranges::sort(result.seeds, {}, &StressSeed::seed);
  for (const auto& s : result.seeds) {
    result.sessions += s.sessions;
    result.max_rounds += s.max_rounds;
    result.corrupted += s.corrupted;
    result.error += s.error;
    result.timeout += s.timeout;
    result.tokens += s.tokens;
  }
  result.seconds = seconds_since(start);
  return result;
}

std::string describe_orders(const StressOptions& options) {
  Mode mode = options.mode;
  mode.order = options.order_kind + ":" + std::to_string(options.first_seed) + ".." +
               std::to_string(options.first_seed + std::max(options.seeds, 1u) - 1);
  return describe(mode);
}

std::string stress_header() {
  return "      seed  sessions  maxrounds  corrupted  error  timeout  tokens/s  first step\n";
}

std::string stress_line(const StressSeed& s) {
  std::array<char, 160> out{};
  std::snprintf(out.data(), out.size(), "%10llu  %8u  %9u  %9u  %5u  %7u  %8.0f  %s\n",
                static_cast<unsigned long long>(s.seed), s.sessions, s.max_rounds, s.corrupted,
                s.error, s.timeout, static_cast<double>(s.tokens) / std::max(s.seconds, 1e-9),
                s.first_step ? std::to_string(*s.first_step).c_str() : "-");
  return out.data();
}

std::string stress_total(const StressOptions& options, const StressResult& r) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%10s  %8u  %9u  %9u  %5u  %7u  %8.0f\n", "total",
                r.sessions, r.max_rounds, r.corrupted, r.error, r.timeout,
                static_cast<double>(r.tokens) / std::max(r.seconds, 1e-9));
  std::string out = line.data();
  out += (options.tag.empty() ? std::string("stress") : options.tag) + ": " +
         describe_orders(options) + "\n";
  if (r.sessions != 0) out += "corrupted sessions: " + rate_text(r.corrupted, r.sessions) + "\n";
  return out;
}

std::string stress_json(const StressOptions& options, const StressResult& r) {
  JsonWriter json;
  json.begin_object();
  json.member("tag", options.tag).member("mode", describe_orders(options));
  json.member("golden", digest_hex(r.golden));
  json.member("sessions", r.sessions).member("maxrounds", r.max_rounds);
  json.member("corrupted", r.corrupted).member("error", r.error).member("timeout", r.timeout);
  const RateInterval interval = clopper_pearson(r.corrupted, r.sessions);
  json.key("rate_95").begin_array().value(interval.lower).value(interval.upper).end_array();
  json.member("statement", r.sessions == 0 ? std::string() : rate_text(r.corrupted, r.sessions));
  json.member("tokens", r.tokens).member("seconds", r.seconds);
  json.key("seeds").begin_array();
  for (const auto& s : r.seeds) {
    json.begin_object();
    json.member("seed", s.seed).member("sessions", s.sessions).member("maxrounds", s.max_rounds);
    json.member("corrupted", s.corrupted).member("error", s.error).member("timeout", s.timeout);
    json.member("digest", digest_hex(s.digest)).member("seconds", s.seconds);
    json.key("first_step");
    if (s.first_step)
      json.value(*s.first_step);
    else
      json.null();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace redecode
