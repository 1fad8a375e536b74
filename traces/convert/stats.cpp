#include "traces/convert/stats.h"

#include <algorithm>

#include "traces/convert/record_sizes.h"
#include "traces/convert/record_stream.h"

namespace redecode {
namespace {

class Collector {
 public:
  explicit Collector(TraceStats& stats) : stats_(stats) {}

  void add(const Step& step) {
    StepStats& s = stats_.steps;
    if (!s.first) s.first = step.index;
    s.last = step.index;
    s.phases[static_cast<size_t>(step.phase)].steps += 1;
    s.phases[static_cast<size_t>(step.phase)].rows += step.rows.size();
    ++s.buckets[step.bucket];
    s.rows += step.rows.size();
    s.rows_left_out += step.rows_left_out;
    const uint64_t batch = step.rows.size() + step.rows_left_out;
    if (step.bucket > batch) s.padding_rows += step.bucket - batch;
    s.batch_rows.add(batch);
    if (step.phase == Phase::decode) s.decode_rows.add(batch);
    add_rows(step);
    add_time(step);
    for (const PageChange& change : step.page_changes) s.shared_pages += change.shared ? 1 : 0;
    s.page_changes += step.page_changes.size();
    for (const Departure& departure : step.departures)
      ++stats_.requests.departures[static_cast<size_t>(departure.reason)];
    for (const Arrival& arrival : step.arrivals) add(arrival, step);
  }

  void add(const Exchange& e) {
    ExchangeStats& s = stats_.exchanges;
    ++s.count;
    s.streamed += e.streamed ? 1 : 0;
    ++s.statuses[e.status];
    ++s.ends[static_cast<size_t>(e.end)];
    if (exchange_sessions_.add(e.session)) ++s.sessions;
    s.prompt_tokens += e.prompt_tokens;
    s.output_tokens += e.output_tokens;
    s.prompt_bytes += e.prompt_bytes;
    for (const ExchangeChoice& choice : e.choices) s.text_bytes += choice.text_bytes;
    if (e.prompt_tokens != 0) s.prompt_lengths.add(e.prompt_tokens);
    if (e.output_tokens != 0) s.output_lengths.add(e.output_tokens);
    if (e.first_us != 0 && e.first_us >= e.start_us) s.first_us.add(e.first_us - e.start_us);
    if (e.end_us != 0 && e.end_us >= e.start_us) s.whole_us.add(e.end_us - e.start_us);
    s.chunks += e.chunk_us.size();
    for (size_t i = 1; i < e.chunk_us.size(); ++i)
      if (e.chunk_us[i] >= e.chunk_us[i - 1]) s.between_us.add(e.chunk_us[i] - e.chunk_us[i - 1]);
    s.by_time.add(e.start_us);
  }

  void add(const Gap& gap) {
    GapStats& s = stats_.gaps[gap.causes];
    ++s.gaps;
    s.steps += gap.count;
    s.bytes += gap.bytes;
  }

  void add(const Event& event) { ++stats_.events[event.kind]; }

 private:
  void add_rows(const Step& step) {
    StepStats& s = stats_.steps;
    for (size_t i = 0; i < step.rows.size(); ++i) {
      const Row& row = step.rows[i];
      s.sampled_tokens += row.wants_output ? 1 : 0;
      if (i + 1 == step.rows.size() || step.rows[i + 1].request != row.request)
        s.sequence_tokens.add(uint64_t{row.position} + 1);
    }
  }

  void add_time(const Step& step) {
    StepStats& s = stats_.steps;
    if (step.time_us != 0) {
      ++s.times_known;
      if (s.times_known == 1) s.first_us = step.time_us;
      s.last_us = std::max(s.last_us, step.time_us);
      if (last_us_ != 0 && step.index == last_index_ + 1) {
        if (step.time_us >= last_us_)
          s.between_us.add(step.time_us - last_us_);
        else
          ++s.times_backwards;
      }
    }
    last_us_ = step.time_us;
    last_index_ = step.index;
  }

  void add(const Arrival& arrival, const Step& step) {
    RequestStats& s = stats_.requests;
    const uint64_t cached = std::min(arrival.cached_tokens, arrival.prompt_tokens);
    if (arrival.resumed) {
      ++s.resumed;
      s.recomputed_tokens += arrival.prompt_tokens - cached;
      return;
    }
    ++s.arrivals;
    if (sessions_.add(arrival.session)) ++s.sessions;
    s.rounds_max =
        std::max(s.rounds_max, arrival.round == UINT32_MAX ? UINT32_MAX : arrival.round + 1);
    s.prompt_tokens.add(arrival.prompt_tokens);
    s.asked_tokens.add(arrival.max_tokens);
    s.prompt_tokens_sum += arrival.prompt_tokens;
    s.cached_tokens_sum += cached;
    if (step.time_us != 0) s.by_time.add(step.time_us);
    s.by_step.add(step.index);
  }

  TraceStats& stats_;
  SeenNumbers sessions_, exchange_sessions_;
  uint64_t last_us_ = 0;
  StepIndex last_index_ = 0;
};

}  // namespace

TraceStats trace_stats(const std::filesystem::path& path) {
  RecordStream stream = trace_stream(path, "`redecode trace info` counts what is in it");
  TraceStats stats;
  stats.path = path.string();
  stats.header = stream.trace()->header();
  Collector collector(stats);
  AnyRecord record;
  while (stream.next(record)) {
    if (record.step) collector.add(*record.step);
    if (record.exchange) collector.add(*record.exchange);
    if (record.gap) collector.add(*record.gap);
    if (record.event) collector.add(*record.event);
  }
  stats.summary = stream.summary();
  stats.kinds = record_sizes(path);
  return stats;
}

}  // namespace redecode
