// engine/price/timed_run.h - how long a program takes on a device, by discrete events.
//
// An op first has a fixed part (launch and latency), which overlaps freely, then moves its bytes
// and does its arithmetic, which share the device: ops that run at once divide bandwidth fairly,
// and a small one cannot draw more than its part of it (DeviceSpec::saturating_kb). Bytes are those
// of its regions; the arithmetic of a matrix kernel is two operations for each weight and row, a
// weight being a persistent buffer without pages that is read whole; from kTensorRows rows on
// tensor cores do it. Experts count as read and used whole. In eager mode the host issues one
// command after another. Deterministic: equal inputs, equal doubles.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/plan/op_graph.h"
#include "engine/price/device_spec.h"

namespace redecode {

inline constexpr uint64_t kTensorRows = 16;

struct OpCost {
  uint64_t bytes_read = 0, bytes_written = 0;
  uint64_t rows = 1;
  double flops = 0;
};
// Cost: O(regions of the command).
OpCost op_cost(const Program& program, const Command& command);

struct TimedOp {
  double start_us = 0, end_us = 0;
};

struct TimedRun {
  std::vector<TimedOp> ops;  // [nodes of the graph]
  double step_us = 0;
  double busy_us = 0;  // during which any op runs
  uint64_t bytes_read = 0;
  std::vector<uint32_t> critical_path;  // nodes, first to last: each waited for the one before it
};

// `more_edges`: pairs of nodes (before, after) beside those of the graph. Cost: O(nodes * ops that
// run at once).
TimedRun timed_run(const Program& program, const OpGraph& graph, const DeviceSpec& device,
                   Submission submission,
                   std::span<const std::pair<uint32_t, uint32_t>> more_edges = {});

// What of the gain of `multi_us` over `single_us` is left at `fixed_us`, as a share; 1 where there
// is no gain to lose.
double gain_kept(double single_us, double multi_us, double fixed_us);

}  // namespace redecode
