#include "engine/batcher/live.h"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

// Turns in a row that neither run a step nor receive or end a request before a source counts as
// stuck.
constexpr uint64_t kMaxEmptyTurns = 65536;

class LiveLoop {
 public:
  LiveLoop(TrafficSource& traffic, Batcher& batcher, const StepExecutor& executor,
           std::span<StepSink* const> sinks, const LiveOptions& options)
      : traffic_(traffic),
        batcher_(batcher),
        executor_(executor),
        sinks_(sinks),
        options_(options),
        before_(batcher.counters()) {}

  LiveResult run() {
    LiveResult result;
    for (;;) {
      if (options_.stop && options_.stop()) {
        result.end = LiveEnd::stopped;
        break;
      }
      const bool news = receive();
      if (batcher_.idle()) {
        if (report_finished() || news) continue;
        if (traffic_.exhausted()) break;
        skip_ahead();
        continue;
      }
      report_finished();
      if (progress_.steps >= options_.max_steps) {
        result.end = LiveEnd::max_steps;
        break;
      }
      run_step();
    }
    finish();
    result.totals = progress_;
    result.requests_left = uint64_t{batcher_.waiting()} + batcher_.running();
    return result;
  }

 private:
  bool receive() {
    incoming_.clear();
    traffic_.poll(progress_.now, incoming_);
    if (!incoming_.empty()) empty_turns_ = 0;
    for (Request& request : incoming_) batcher_.submit(std::move(request));
    return !incoming_.empty();
  }

  bool report_finished() {
    const auto finished = batcher_.take_finished();
    for (const FinishedRequest& done : finished) {
      ++progress_.ends.at(static_cast<size_t>(done.end));
      traffic_.finished(done.request, done.output, done.end, progress_.now);
    }
    return !finished.empty();
  }

  void run_step() {
    Step step;
    REDECODE_CHECK(batcher_.next(step));
    for (StepSink* sink : sinks_) sink->scheduled(step);
    const StepOutput output = executor_(step);
    for (StepSink* sink : sinks_) sink->produced(output);
    batcher_.update(output);
    ++progress_.steps;
    ++progress_.now;
    empty_turns_ = 0;
    report_finished();
    if (options_.progress_every_steps != 0 && progress_.steps % options_.progress_every_steps == 0)
      show_progress();
  }

  void skip_ahead() {
    const StepIndex next = traffic_.next_arrival();
    if (next == UINT64_MAX || ++empty_turns_ > kMaxEmptyTurns)
      throw Error(
          ErrorCode::usage,
          "Traffic is stuck: nothing runs or waits, no arrival is announced, and its source "
          "says that more is to come. The source must announce an arrival or be exhausted.",
          "now " + std::to_string(progress_.now) + ", steps " + std::to_string(progress_.steps) +
              ", requests submitted " + std::to_string(batcher_.counters().submitted) +
              ", finished " + std::to_string(batcher_.counters().finished));
    progress_.now = std::max(next, progress_.now + 1);
  }

  void show_progress() {
    const BatcherCounters& counters = batcher_.counters();
    progress_.output_tokens = counters.output_tokens - before_.output_tokens;
    progress_.prompt_rows = counters.prompt_rows - before_.prompt_rows;
    progress_.requests_submitted = counters.submitted - before_.submitted;
    progress_.requests_finished = counters.finished - before_.finished;
    progress_.preemptions = counters.preemptions - before_.preemptions;
    progress_.cached_tokens = counters.cached_tokens - before_.cached_tokens;
    if (options_.progress) options_.progress(progress_);
  }

  void finish() {
    Step step;
    if (options_.final_departures && batcher_.departures_only(step))
      for (StepSink* sink : sinks_) sink->scheduled(step);
    show_progress();
  }

  TrafficSource& traffic_;
  Batcher& batcher_;
  const StepExecutor& executor_;
  std::span<StepSink* const> sinks_;
  const LiveOptions& options_;
  const BatcherCounters before_;
  LiveProgress progress_;
  std::vector<Request> incoming_;
  uint64_t empty_turns_ = 0;
};

}  // namespace

LiveResult run_live(TrafficSource& traffic, Batcher& batcher, const StepExecutor& executor,
                    std::span<StepSink* const> sinks, const LiveOptions& options) {
  REDECODE_CHECK(batcher.idle());
  REDECODE_CHECK(static_cast<bool>(executor));
  return LiveLoop(traffic, batcher, executor, sinks, options).run();
}

}  // namespace redecode
