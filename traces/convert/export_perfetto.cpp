#include "traces/convert/export_perfetto.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/convert/perfetto_proto.h"
#include "traces/convert/record_stream.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

enum Track : uint64_t {
  kSteps = 1,
  kRequests,
  kExchanges,
  kBatchRows,
  kRunning,
  kEvents,
  kGaps,
  kFirstRequest = uint64_t{1} << 32,   // plus its number
  kFirstExchange = uint64_t{1} << 33,  // plus its number; those stay far below 2^63
};
constexpr uint64_t kStandInUs = 1000;  // between steps whose times are not known
constexpr char kNoTimes[] = "no step says its time: steps stand 1 ms apart";

enum class Stage : uint8_t { queued, prefill, decode, preempted };

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::queued:
      return "queued";
    case Stage::prefill:
      return "prefill";
    case Stage::decode:
      return "decode";
    case Stage::preempted:
      return "preempted";
  }
  return "?";
}

class Picture {
 public:
  Picture(PerfettoWriter& out, bool has_times) : out_(out), has_times_(has_times) {}

  void add(const Step& step, const TraceReader& reader) {
    if (!opened_) open_steps(step, reader);
    const uint64_t now_us = advance(step.index, step.time_us);
    close_step(now_us);
    draw_departures(step, now_us);
    draw_arrivals(step, now_us);
    draw_rows(step, now_us);
    PerfettoArguments arguments;
    arguments.add("step", step.index).add("bucket", step.bucket).add("rows", step.rows.size());
    arguments.add("padded_rows", step.padded_rows());
    arguments.add("departures", step.departures.size()).add("arrivals", step.arrivals.size());
    out_.begin(kSteps, now_us, to_text(step.phase), arguments);
    out_.count(kBatchRows, now_us, step.rows.size());
    out_.count(kRunning, now_us, running_);
    begun_us_ = now_us;
  }

  void add(const Event& event) {
    const uint64_t now_us = advance(event.before_step, event.time_us);
    if (event.kind == EventKind::queued && event.request != kNoRequest &&
        !stages_.contains(event.request))
      begin(event.request, Stage::queued, now_us, {});
    name_once(kEvents, "events");
    PerfettoArguments arguments;
    arguments.add("before_step", event.before_step);
    if (event.request != kNoRequest) arguments.add("request", event.request);
    if (event.a != 0 || event.b != 0) arguments.add("a", event.a).add("b", event.b);
    if (!event.text.empty()) arguments.add("text", event.text);
    out_.instant(kEvents, now_us, to_text(event.kind), arguments);
  }

  void add(const Gap& gap) {
    if (begun_us_) close_step(std::max(last_us_, *begun_us_ + length_us_));
    name_once(kGaps, "gaps");
    PerfettoArguments arguments;
    arguments.add("first", gap.first).add("last", gap.last).add("count", gap.count);
    arguments.add("causes", gap_causes_text(gap.causes));
    const uint64_t now_us = has_times_ ? last_us_ : advance(gap.first, 0);
    out_.instant(kGaps, now_us, to_text(gap), arguments);
  }

  void add(const Exchange& e) {
    name_once(kExchanges, "exchanges");
    const uint64_t track = kFirstExchange + (e.number & ((uint64_t{1} << 62) - 1));
    out_.track(track, "exchange " + std::to_string(e.number), kExchanges);
    PerfettoArguments arguments;
    arguments.add("path", e.path).add("model", e.model).add("status", e.status);
    arguments.add("end", to_text(e.end)).add("session", e.session).add("round", e.round);
    arguments.add("prompt_tokens", e.prompt_tokens).add("output_tokens", e.output_tokens);
    if (e.first_us == 0 && e.end_us == 0) {
      out_.instant(track, e.start_us, "request", arguments);
      return;
    }
    const uint64_t first_us = std::max(e.first_us == 0 ? e.end_us : e.first_us, e.start_us);
    out_.begin(track, e.start_us, "to first byte", arguments);
    out_.end(track, first_us);
    if (e.first_us == 0) return;
    out_.begin(track, first_us, "answer");
    out_.end(track, std::max(first_us, e.end_us));
  }

  void finish() {
    const uint64_t end_us = begun_us_ ? std::max(last_us_, *begun_us_ + length_us_) : last_us_;
    if (begun_us_) close_step(end_us);
    for (const auto& [request, stage] : stages_) out_.end(kFirstRequest + request, end_us);
    stages_.clear();
  }

 private:
  void open_steps(const Step& step, const TraceReader& reader) {
    opened_ = true;
    out_.track(kSteps, has_times_ ? std::string("steps") : std::string("steps; ") + kNoTimes);
    out_.counter_track(kBatchRows, "batch rows");
    out_.counter_track(kRunning, "running requests");
    const uint64_t now_us = advance(step.index, step.time_us);
    for (const RunningRequest& running : reader.start().running)
      if (!stages_.contains(running.arrival.request))
        begin(
            running.arrival.request,
            running.next_position < running.arrival.prompt_tokens ? Stage::prefill : Stage::decode,
            now_us, {});
  }

  // The time of what happens at `step`, never before what came earlier.
  uint64_t advance(StepIndex step, uint64_t time_us) {
    if (!has_times_) {
      if (!base_step_) base_step_ = step;
      time_us = step < *base_step_ ? 0 : (step - *base_step_) * kStandInUs;
    }
    last_us_ = std::max(last_us_, time_us);
    return last_us_;
  }

  // Also carries out what its rows began: a request that gave its first token now decodes.
  void close_step(uint64_t now_us) {
    if (!begun_us_) return;
    if (now_us > *begun_us_) length_us_ = now_us - *begun_us_;
    out_.end(kSteps, now_us);
    begun_us_.reset();
    last_us_ = std::max(last_us_, now_us);
    for (const RequestId request : prefilled_) change(request, Stage::decode, now_us, {});
    prefilled_.clear();
  }

  void draw_departures(const Step& step, uint64_t now_us) {
    for (const Departure& departure : step.departures) {
      const auto at = stages_.find(departure.request);
      if (at == stages_.end()) continue;
      if (departure.reason == DepartureReason::preempted) {
        change(departure.request, Stage::preempted, now_us, {});
        continue;
      }
      PerfettoArguments arguments;
      arguments.add("left", to_text(departure.reason));
      leave(at->second);
      out_.end(kFirstRequest + departure.request, now_us, arguments);
      stages_.erase(at);
    }
  }

  void draw_arrivals(const Step& step, uint64_t now_us) {
    for (const Arrival& arrival : step.arrivals) {
      PerfettoArguments arguments;
      arguments.add("session", arrival.session).add("round", arrival.round);
      arguments.add("prompt_tokens", arrival.prompt_tokens);
      arguments.add("cached_tokens", arrival.cached_tokens).add("max_tokens", arrival.max_tokens);
      const bool cached = arrival.cached_tokens >= arrival.prompt_tokens;
      change(arrival.request, cached ? Stage::decode : Stage::prefill, now_us, arguments);
    }
  }

  void draw_rows(const Step& step, uint64_t now_us) {
    for (const Row& row : step.rows) {
      const auto at = stages_.find(row.request);
      if (at == stages_.end())  // it arrived in a step that is missing
        begin(row.request, row.wants_output ? Stage::decode : Stage::prefill, now_us, {});
      else if (row.wants_output && at->second == Stage::prefill &&
               (prefilled_.empty() || prefilled_.back() != row.request))
        prefilled_.push_back(row.request);
    }
  }

  void begin(RequestId request, Stage stage, uint64_t now_us, const PerfettoArguments& arguments) {
    name_once(kRequests, "requests");
    out_.track(kFirstRequest + request, "r" + std::to_string(request), kRequests);
    enter(stage);
    stages_[request] = stage;
    out_.begin(kFirstRequest + request, now_us, name_of(stage), arguments);
  }

  void change(RequestId request, Stage stage, uint64_t now_us, const PerfettoArguments& arguments) {
    const auto at = stages_.find(request);
    if (at == stages_.end()) {
      begin(request, stage, now_us, arguments);
      return;
    }
    leave(at->second);
    enter(stage);
    at->second = stage;
    out_.end(kFirstRequest + request, now_us);
    out_.begin(kFirstRequest + request, now_us, name_of(stage), arguments);
  }

  static bool runs(Stage stage) { return stage == Stage::prefill || stage == Stage::decode; }
  void enter(Stage stage) { running_ += runs(stage) ? 1 : 0; }
  void leave(Stage stage) { running_ -= runs(stage) ? 1 : 0; }

  void name_once(Track track, const char* name) {
    const uint32_t bit = 1u << track;
    if ((named_ & bit) == 0) out_.track(track, name);
    named_ |= bit;
  }

  PerfettoWriter& out_;
  bool has_times_, opened_ = false;
  std::optional<StepIndex> base_step_;
  uint64_t last_us_ = 0, length_us_ = kStandInUs;
  std::optional<uint64_t> begun_us_;  // of the step that is open
  std::map<RequestId, Stage> stages_;
  std::vector<RequestId> prefilled_;  // by the step that is open
  uint64_t running_ = 0;
  uint32_t named_ = 0;
};

struct Known {
  bool steps = false, times = false;
};

// Reads up to the first time, which is one of the first records where there are any.
Known look_for_times(const std::filesystem::path& path) {
  RecordStream stream = trace_stream(path, "steps and their times are in its trace");
  Known known;
  AnyRecord record;
  while (!known.times && stream.next(record)) {
    if (!record.step) continue;
    known.steps = true;
    known.times = record.step->time_us != 0;
  }
  return known;
}

}  // namespace

ExportResult export_perfetto(const std::filesystem::path& path, ByteSink& out) {
  const Known known = look_for_times(path);
  PerfettoWriter writer(out);
  Picture picture(writer, known.times);
  RecordStream stream(path);
  AnyRecord record;
  while (stream.next(record)) {
    if (record.step) picture.add(*record.step, *stream.trace());
    if (record.event) picture.add(*record.event);
    if (record.gap) picture.add(*record.gap);
    if (record.exchange) picture.add(*record.exchange);
  }
  picture.finish();
  out.write({});  // an empty input still makes a file
  ExportResult result{
      .items = writer.events(), .unit = "events", .end = stream.summary().end, .notices = {}};
  if (known.steps && !known.times) result.notices.emplace_back(kNoTimes);
  return result;
}

}  // namespace redecode
