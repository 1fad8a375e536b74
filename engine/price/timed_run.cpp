#include "engine/price/timed_run.h"

#include <algorithm>
#include <limits>

#include "traces/check.h"

namespace redecode {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Work {
  double fixed_us = 0;     // launch and latency
  double transfer_us = 0;  // alone, at the bandwidth that it can draw
  double share = 1;        // of the whole bandwidth, that it draws alone
};

class Simulation {
 public:
  Simulation(const Program& program, const OpGraph& graph, const DeviceSpec& device,
             Submission submission, std::span<const std::pair<uint32_t, uint32_t>> more_edges)
      : graph_(graph), device_(device), eager_(submission == Submission::eager) {
    const uint32_t n = graph.size();
    work_.resize(n);
    issued_us_.resize(n);
    left_.resize(n);
    succs_.resize(n);
    out_.ops.resize(n);
    waited_for_.assign(n, OpGraph::kNoNode);
    for (uint32_t node = 0; node < n; ++node) {
      const Command& c = program.commands[graph.commands[node]];
      const OpCost cost = op_cost(program, c);
      out_.bytes_read += cost.bytes_read;
      work_[node] = work_of(cost);
      // In eager mode the host issues in program order, events included.
      issued_us_[node] = eager_ ? device.eager_launch_us * (graph.commands[node] + 1) : 0;
      for (const uint32_t pred : graph.preds_of(node)) add_edge(pred, node);
    }
    for (const auto& [before, after] : more_edges) add_edge(before, after);
  }

  TimedRun run() {
    for (uint32_t node = 0; node < graph_.size(); ++node)
      if (left_[node] == 0) start(node, 0);
    while (!active_.empty()) advance();
    for (const TimedOp& op : out_.ops) out_.step_us = std::max(out_.step_us, op.end_us);
    out_.busy_us = busy_us_;
    trace_back();
    return std::move(out_);
  }

 private:
  struct Active {
    uint32_t node = 0;
    double fixed_until_us = 0;
    double left_us = 0;  // of its transfer, at full share
  };

  Work work_of(const OpCost& cost) const {
    const double read_us = static_cast<double>(cost.bytes_read) / (device_.read_gb_per_s * 1e3);
    const double write_us =
        static_cast<double>(cost.bytes_written) / (device_.write_gb_per_s * 1e3);
    const double memory_us = read_us + write_us;
    const double tflops = cost.rows >= kTensorRows ? device_.tensor_tflops : device_.vector_tflops;
    const double math_us = cost.flops / (tflops * 1e6);
    const double bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
    Work w;
    w.fixed_us = device_.kernel_floor_us;
    // The more bytes, the more multiprocessors take part.
    w.share = std::clamp(bytes / (device_.saturating_kb * 1e3), 1.0 / 32, 1.0);
    w.transfer_us = std::max(memory_us / w.share, math_us);
    return w;
  }

  void add_edge(uint32_t before, uint32_t after) {
    REDECODE_CHECK_OP(before, <, after);
    succs_[before].push_back(after);
    ++left_[after];
  }

  void start(uint32_t node, double ready_us) {
    double at = std::max(ready_us, issued_us_[node]);
    const bool crosses = waited_for_[node] != OpGraph::kNoNode &&
                         graph_.lanes[waited_for_[node]] != graph_.lanes[node];
    if (!eager_) at += waited_for_[node] == OpGraph::kNoNode ? 0 : device_.graph_node_us;
    if (crosses) at += device_.event_us;
    out_.ops[node].start_us = at;
    active_.push_back({node, at + work_[node].fixed_us, work_[node].transfer_us});
  }

  // To the next moment at which an op begins to move bytes or ends.
  void advance() {
    double demand = 0;
    for (const Active& a : active_)
      if (a.fixed_until_us <= now_us_) demand += work_[a.node].share;
    const double slowdown = std::max(1.0, demand);
    double next = kNever;
    for (const Active& a : active_)
      next = std::min(
          next, a.fixed_until_us > now_us_ ? a.fixed_until_us : now_us_ + a.left_us * slowdown);
    const bool any_running = std::ranges::any_of(
        active_, [&](const Active& a) { return out_.ops[a.node].start_us <= now_us_; });
    if (any_running) busy_us_ += next - now_us_;
    for (Active& a : active_)
      if (a.fixed_until_us <= now_us_) a.left_us -= (next - now_us_) / slowdown;
    now_us_ = next;
    finish();
  }

  void finish() {
    constexpr double kDone = 1e-9;
    std::vector<uint32_t> done;
    std::erase_if(active_, [&](const Active& a) {
      const bool ended = a.fixed_until_us <= now_us_ && a.left_us <= kDone;
      if (ended) done.push_back(a.node);
      return ended;
    });
    std::ranges::sort(done);
    for (const uint32_t node : done) {
      out_.ops[node].end_us = now_us_;
      for (const uint32_t after : succs_[node]) {
        waited_for_[after] = node;
        if (--left_[after] == 0) start(after, now_us_);
      }
    }
  }

  void trace_back() {
    uint32_t last = OpGraph::kNoNode;
    for (uint32_t node = 0; node < graph_.size(); ++node)
      if (last == OpGraph::kNoNode || out_.ops[node].end_us > out_.ops[last].end_us) last = node;
    for (; last != OpGraph::kNoNode; last = waited_for_[last]) out_.critical_path.push_back(last);
    std::ranges::reverse(out_.critical_path);
  }

  const OpGraph& graph_;
  const DeviceSpec& device_;
  bool eager_;
  std::vector<Work> work_;
  std::vector<double> issued_us_;
  std::vector<uint32_t> left_, waited_for_;
  std::vector<std::vector<uint32_t>> succs_;
  std::vector<Active> active_;
  double now_us_ = 0, busy_us_ = 0;
  TimedRun out_;
};

bool is_weight(const Program& program, const Region& r) {
  if (!r.buffer.is_persistent() || r.access != Access::read || r.row_stride_bytes != 0)
    return false;
  const PersistentBuffer& b = (*program.persistents)[r.buffer.index()];
  return b.page_bytes == 0 && r.offset_bytes == 0 && r.size_bytes == b.size_bytes;
}

}  // namespace

OpCost op_cost(const Program& program, const Command& command) {
  OpCost cost;
  uint64_t weight_bytes = 0, rows = 1;
  for (const auto& ranges : {program.operands_of(command), program.touched_of(command)})
    for (const Region& r : ranges) {
      if (reads(r.access)) cost.bytes_read += r.size_bytes;
      if (writes(r.access)) cost.bytes_written += r.size_bytes;
      if (is_weight(program, r)) weight_bytes += r.size_bytes;
      if (r.row_stride_bytes != 0) rows = std::max(rows, r.size_bytes / r.row_stride_bytes);
    }
  cost.rows = rows;
  constexpr double kBytesAWeight = 2;  // bf16
  if (command.kind == CommandKind::launch)
    cost.flops =
        2.0 * static_cast<double>(weight_bytes) / kBytesAWeight * static_cast<double>(rows);
  return cost;
}

TimedRun timed_run(const Program& program, const OpGraph& graph, const DeviceSpec& device,
                   Submission submission,
                   std::span<const std::pair<uint32_t, uint32_t>> more_edges) {
  return Simulation(program, graph, device, submission, more_edges).run();
}

double gain_kept(double single_us, double multi_us, double fixed_us) {
  const double gain = single_us - multi_us;
  return gain <= 0 ? 1.0 : (single_us - fixed_us) / gain;
}

}  // namespace redecode
