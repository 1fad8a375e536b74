#include "engine/decoder/plan_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/decoder/graph_cache.h"
#include "engine/decoder/lowering.h"
#include "engine/device/sim/graph.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint64_t kAlignmentBytes = 512;
constexpr uint64_t kAddressEnd = uint64_t{1} << 56;

bool is_node(const Command& c) {
  return c.kind == CommandKind::launch || c.kind == CommandKind::copy ||
         c.kind == CommandKind::fill;
}

[[noreturn]] void fail_capture(const Program& program, uint32_t bucket, const CaptureResult& why) {
  const Command& c = program.commands.at(why.command);
  throw Error(ErrorCode::environment,
              "capture failed: " + std::string(capture_error_name(why.status)) + ": " + why.message,
              "bucket " + std::to_string(bucket) + ", `" + std::string((*program.names)[c.name]) +
                  "` of layer " + std::to_string(c.layer));
}

}  // namespace

std::byte* AddressSpace::reserve(uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > kAddressEnd - next_) return nullptr;
  const uint64_t base = next_;
  next_ += (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  return reinterpret_cast<std::byte*>(base);  // NOLINT(performance-no-int-to-ptr): never read
}

PlanChecker::PlanChecker(const KernelTable& kernels, const Model& model, const Mode& mode)
    : kernels_(kernels),
      model_(model),
      mode_(mode),
      defects_(mode.inject, model),
      pool_(space_),
      builder_(model.settings(), defects_.pad()),
      inspector_(*model.persistents()) {
  for (const PersistentBuffer& p : *model.persistents()) {
    Binding binding;
    binding.address = space_.reserve(p.size_bytes);
    binding.size_bytes = p.size_bytes;
    if (binding.address == nullptr)
      throw Error(ErrorCode::limit, "`" + (*model.names()).names[p.name] + "` would take " +
                                        std::to_string(p.size_bytes) + " bytes");
    persistents_.push_back(binding);
    persistent_bytes_ += p.size_bytes;
  }
  inspector_.expect_reductions(lower_batch(model_, mode_, defects_, builder_.dummy(1), false));
  if (mode.capture == CaptureMode::graph) capture_all();
}

void PlanChecker::warm_up(const Program& program) {
  for (int run = 0; run < GraphCache::kWarmUps; ++run) {
    const Bindings bindings = redecode::bind(program, pool_, kOrdinaryPool, persistents_);
    release(bindings, pool_);
    pool_.reclaim(UINT32_MAX);
  }
}

void PlanChecker::capture_all() {
  const PoolId pool = pool_.make_private_pool();
  std::vector<uint32_t> descending = model_.settings().buckets;
  std::ranges::sort(descending, std::greater<>());
  for (const uint32_t bucket : descending) {
    Captured captured;
    captured.program = lower_batch(model_, mode_, defects_, builder_.dummy(bucket), false);
    warm_up(captured.program);
    pool_.begin_capture();
    captured.bindings = redecode::bind(captured.program, pool_, pool, persistents_);
    SimGraph graph;
    const CaptureResult result =
        capture_graph(kernels_, captured.program, captured.bindings, graph);
    pool_.end_capture();
    release(captured.bindings, pool_);
    if (result.status != CaptureStatus::ok) fail_capture(captured.program, bucket, result);
    captured_.emplace(bucket, std::move(captured));
  }
}

void PlanChecker::add(const Step& step) {
  tables_.apply(step, model_.inputs().table_stride);
  const Batch batch = builder_.build(step, tables_);
  ++steps_;
  if (batch.row_count() == 0) return;
  const size_t before = inspector_.findings().size();
  Program inputs = model_.lower_inputs(batch);
  defects_.apply_to_inputs(inputs);
  const Program program = lower_batch(model_, mode_, defects_, batch, true);
  const auto at = step.phase == Phase::decode ? captured_.find(step.bucket) : captured_.end();
  if (at != captured_.end()) {
    ++graph_steps_;
    inspector_.add_step(step.index, inputs, program, &at->second.program, at->second.bindings,
                        tables_);
    keep_largest(batch.row_count(), program, at->second.bindings, true);
    keep(step.index, program, at->second.bindings, Submission::graph, before);
    return;
  }
  const Bindings bindings = redecode::bind(program, pool_, kOrdinaryPool, persistents_);
  release(bindings, pool_);
  pool_.reclaim(UINT32_MAX);
  inspector_.add_step(step.index, inputs, program, nullptr, bindings, tables_);
  keep_largest(batch.row_count(), program, bindings, false);
  keep(step.index, program, bindings, Submission::eager, before);
}

void PlanChecker::keep_largest(uint32_t rows, const Program& program, const Bindings& bindings,
                               bool from_graph) {
  if (program.commands.size() <= largest_.commands) return;
  largest_ = size_of(program, bindings);
  largest_.rows = rows;
  largest_.from_graph = from_graph;
}

PlanSize PlanChecker::size_of(const Program& program, const Bindings& bindings) const {
  PlanSize size;
  size.commands = static_cast<uint32_t>(program.commands.size());
  size.nodes = static_cast<uint32_t>(std::ranges::count_if(program.commands, is_node));
  size.streams = program.stream_count;
  for (const TransientBuffer& t : program.transients) size.transient_bytes += t.size_bytes;
  SimGraph graph;
  if (capture_graph(kernels_, program, bindings, graph).status == CaptureStatus::ok)
    size.edges = graph.stats().edges;
  return size;
}

void PlanChecker::keep(StepIndex step, const Program& program, const Bindings& bindings,
                       Submission submission, size_t findings_before) {
  if (!keeping_ || kept_.has_finding) return;
  const auto& findings = inspector_.findings();
  bool has_finding = false;
  for (size_t i = findings_before; i < findings.size(); ++i)
    has_finding = has_finding || findings[i].severity == Severity::conflicting;
  if (!has_finding && program.commands.size() <= kept_.program.commands.size()) return;
  kept_.step = step;
  kept_.has_finding = has_finding;
  kept_.program = program;
  kept_.submission = submission;
  place_persistents(*program.persistents, kept_.extents);
  place_transients(program, bindings, kept_.extents);
}

}  // namespace redecode
