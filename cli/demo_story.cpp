#include "cli/demo_story.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>

#include "cli/jobs.h"
#include "cli/live_session.h"
#include "compare/explain.h"
#include "engine/device/script.h"
#include "recorder/workload.h"
#include "replayer/shrink.h"
#include "replayer/step_lab.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint32_t kTries = 20;
constexpr uint64_t kMostMoreOrders = 64;

std::vector<StepIndex> real_arrivals(uint32_t sessions, uint32_t ms_per_step) {
  std::vector<StepIndex> out;
  for (const auto& row : load_rows(WorkloadKind::azure)) {
    if (out.size() == sessions) break;
    out.push_back(row.arrival_us / (uint64_t{ms_per_step} * 1000));
  }
  while (out.size() < sessions) out.push_back(out.empty() ? 0 : out.back());
  return out;
}

void record(const DemoOptions& options, DemoResult& result, const std::function<bool()>& stop) {
  LiveRequest request;
  request.model = options.model;
  request.batcher = live_options(options.model);
  request.workload.kind = WorkloadKind::agent;
  request.workload.agent = options.agent;
  request.workload.agent.arrivals = real_arrivals(options.agent.sessions, options.ms_per_step);
  request.stop = stop;
  result.trace = record_to_memory(request);
  result.workload = result.trace.header.workload;
  for (const Step& step : result.trace.steps) {
    result.rows += step.rows.size();
    result.requests += step.arrivals.size();
  }
  for (const auto& output : result.trace.outputs) result.tokens += output.rows.size();
  TraceWriter writer(options.trace_path, result.trace.header, {}, true);
  size_t next_output = 0;
  for (const Step& step : result.trace.steps) {
    writer.write(step);
    if (next_output < result.trace.outputs.size() &&
        result.trace.outputs[next_output].step == step.index)
      writer.write(result.trace.outputs[next_output++]);
  }
  writer.close();
  result.trace_bytes = std::filesystem::file_size(options.trace_path);
}

DemoGolden run_golden(const Trace& trace, IndexKeyType key, const std::function<bool()>& stop) {
  DemoGolden golden;
  golden.mode.index_key = key;
  ReplayOptions replay_options;
  replay_options.mode = golden.mode;
  replay_options.inspect = false;
  replay_options.stop = stop;
  replay_options.output = [&](const StepOutput& o) { golden.outputs.push_back(o); };
  golden.digest = replay(trace, replay_options).digest;
  return golden;
}

DemoCell run_cell(const Trace& trace, const DemoGolden& golden, const Mode& mode,
                  const std::function<bool()>& stop) {
  DemoCell cell;
  cell.mode = mode;
  SessionCounter counter{SessionMap(trace.steps)};
  size_t at = 0;
  ReplayOptions replay_options;
  replay_options.mode = mode;
  replay_options.stop = stop;
  replay_options.output = [&](const StepOutput& output) {
    const StepOutput& expected = golden.outputs.at(at++);
    const StepDifference difference = compare_step(expected, output);
    counter.add(expected, difference);
    if (difference.first && !cell.divergence) {
      cell.divergence = difference.first;
      cell.order_taken = output.order;
    }
  };
  const ReplayResult run = replay(trace, replay_options);
  const SessionSummary sessions = counter.summary();
  cell.sessions = static_cast<uint32_t>(sessions.sessions.size());
  cell.corrupted_sessions = sessions.corrupted;
  cell.rows_differing = sessions.rows_differing;
  cell.digest = run.digest;
  cell.same_bits = run.digest == golden.digest;
  cell.findings = run.findings.size();
  return cell;
}

const DemoGolden& golden_of(const DemoResult& result, IndexKeyType key) {
  return *std::ranges::find_if(result.goldens,
                               [&](const DemoGolden& g) { return g.mode.index_key == key; });
}

// Departures of the diverging step, shrunk to the fewest that still fail.
void find_order(StepLab& lab, const StepOutput& expected, StepIndex step, const std::string& taken,
                DemoFinding& out) {
  const auto text = [&](const std::vector<ScriptPick>& picks) {
    return "script:" + script_entry(step, to_text(picks));
  };
  const auto fails = [&](const std::string& order) {
    return compare_step(expected, lab.run(order)).first.has_value();
  };
  auto picks = parse_departures(taken);
  out.departures_before = picks.size();
  if (!picks.empty())
    picks = shrink_picks(std::move(picks), [&](const std::vector<ScriptPick>& fewer) {
              try {
                return fails(fewer.empty() ? "fifo" : text(fewer));
              } catch (const Error&) {
                return false;
              }
            }).picks;
  out.departures_after = picks.size();
  out.order = picks.empty() ? "fifo" : text(picks);
  for (uint32_t i = 0; i < kTries; ++i) {
    ++out.tries;
    out.failures += fails(out.order) ? 1 : 0;
    out.fifo_failures += fails("fifo") ? 1 : 0;
  }
}

DemoFinding find_cause(const DemoResult& result, const DemoCell& cell) {
  const StepIndex step = cell.divergence->step;
  const DemoGolden& golden = golden_of(result, cell.mode.index_key);
  const auto expected = std::ranges::find(golden.outputs, step, &StepOutput::step);
  DemoFinding out;
  StepLab candidate(result.trace, step, cell.mode);
  find_order(candidate, *expected, step, cell.order_taken, out);

  StepLab clean(result.trace, step, golden.mode);
  clean.set_probe(Probe::values);
  candidate.set_probe(Probe::values);
  const StepDifference inside = compare_step(clean.run("fifo"), candidate.run(out.order));
  out.divergence = inside.first.value_or(*cell.divergence);
  candidate.set_probe(Probe::none);
  const auto findings = candidate.inspect();
  if (const auto why = explain(out.divergence, findings)) out.finding = why->finding;
  if (out.finding.request == kNoRequest) {
    const auto rows = std::ranges::find(result.trace.steps, step, &Step::index)->rows;
    if (out.divergence.row < rows.size()) out.finding.request = rows[out.divergence.row].request;
  }
  return out;
}

constexpr std::array kMatrixKeys = {IndexKeyType::bf16, IndexKeyType::fp8};
constexpr std::array kMatrixCaptures = {CaptureMode::eager, CaptureMode::graph};
constexpr std::array kMatrixStreams = {StreamMode::single, StreamMode::multi};

std::vector<Mode> matrix_modes(const DemoOptions& options) {
  std::vector<Mode> modes;
  for (const auto key : kMatrixKeys)
    for (const auto capture : kMatrixCaptures)
      for (const auto streams : kMatrixStreams) {
        Mode mode;
        mode.index_key = key;
        mode.capture = capture;
        mode.streams = streams;
        mode.order = options.order;
        mode.inject = {options.defect};
        modes.push_back(mode);
      }
  return modes;
}

std::optional<size_t> worst_cell(const DemoResult& result) {
  std::optional<size_t> worst;
  for (size_t i = 0; i < result.cells.size(); ++i)
    if (result.cells[i].divergence &&
        (!worst || result.cells[i].corrupted_sessions > result.cells[*worst].corrupted_sessions))
      worst = i;
  return worst;
}

// A short workload may pass under one order by luck. Cells with a structural finding are then
// replayed under the seeds that follow, until one differs from its golden.
void try_more_orders(const DemoOptions& options, DemoResult& result, const DemoProgress& progress,
                     const std::function<bool()>& stop) {
  const size_t colon = options.order.find(':');
  const std::string kind = options.order.substr(0, colon);
  if (kind != "paced" && kind != "seed") return;
  const uint64_t first = std::stoull(options.order.substr(colon + 1));
  for (uint64_t more = 1; more <= kMostMoreOrders && !result.worst; ++more) {
    if (stop && stop()) return;
    progress("trying more orders", 0.85);
    run_jobs(result.cells.size(), options.threads, [&](size_t i) {
      DemoCell& cell = result.cells[i];
      if (cell.findings == 0) return;
      Mode mode = cell.mode;
      mode.order = kind + ":" + std::to_string(first + more);
      cell = run_cell(result.trace, golden_of(result, mode.index_key), mode, stop);
    });
    result.worst = worst_cell(result);
  }
}

}  // namespace

DemoResult run_demo(const DemoOptions& options, const DemoProgress& progress,
                    const std::function<bool()>& stop) {
  DemoResult result;
  progress("recording live traffic", 0.0);
  record(options, result, stop);

  progress("golden runs", 0.1);
  result.goldens.resize(kMatrixKeys.size());
  run_jobs(kMatrixKeys.size(), options.threads,
           [&](size_t i) { result.goldens[i] = run_golden(result.trace, kMatrixKeys[i], stop); });

  const auto modes = matrix_modes(options);
  result.cells.resize(modes.size());
  std::atomic<size_t> done{0};
  run_jobs(modes.size(), options.threads, [&](size_t i) {
    progress("replaying the matrix", 0.25 + 0.6 * static_cast<double>(done) / 8.0);
    result.cells[i] = run_cell(result.trace, golden_of(result, modes[i].index_key), modes[i], stop);
    ++done;
  });
  if (stop && stop()) return result;

  result.worst = worst_cell(result);
  if (!result.worst) try_more_orders(options, result, progress, stop);
  if (!result.worst) return result;
  progress("finding the cause", 0.85);
  const DemoCell& worst = result.cells[*result.worst];
  result.finding = find_cause(result, worst);
  progress("replaying with the fix", 0.92);
  Mode fixed = worst.mode;
  fixed.inject.clear();
  result.fixed = run_cell(result.trace, golden_of(result, fixed.index_key), fixed, stop);
  progress("done", 1.0);
  return result;
}

}  // namespace redecode
