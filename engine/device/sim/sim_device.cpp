// engine/device/sim/sim_device.cpp - the simulated device: memory, issue and graphs.
#include "engine/device/sim/sim_device.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/device/sim/graph.h"
#include "engine/device/sim/stream_queues.h"
#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint64_t kAlignmentBytes = 512;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Weights are streamed from end to end: with small pages the translations cost bandwidth.
void ask_for_huge_pages([[maybe_unused]] std::byte* base, [[maybe_unused]] uint64_t size_bytes) {
#if defined(__linux__)
  if (size_bytes % kHugePageBytes == 0) madvise(base, size_bytes, MADV_HUGEPAGE);
#endif
}

struct FreeMemory {
  void operator()(std::byte* base) const { std::free(base); }
};
using Segment = std::unique_ptr<std::byte, FreeMemory>;

}  // namespace

struct SimDevice::Impl {
  Impl(const KernelTable& kernel_table, Exec& executor, SimOptions sim_options)
      : kernels(kernel_table), exec(executor), options(sim_options), queues(executor) {}

  void issue(const Program& program, const Bindings& bindings, uint32_t index, Order& order,
             const Audience& audience);
  void issue_free(const Program& program, const Bindings& bindings, const Command& c);
  const SimGraph& alive(GraphId graph) const;
  EventToken& event_of(const Command& c);

  const KernelTable& kernels;
  Exec& exec;
  SimOptions options;
  std::vector<Segment> segments;
  StreamQueues queues;
  // Of the program being issued: newest recording by event, and whether record_stream named a
  // transient.
  std::vector<EventToken> events;
  std::vector<uint8_t> deferred_frees;
  std::vector<std::unique_ptr<SimGraph>> graphs;     // by id - 1; null: destroyed
  std::vector<std::unique_ptr<SimGraph>> destroyed;  // kept while launches of them may be pending
};

EventToken& SimDevice::Impl::event_of(const Command& c) {
  REDECODE_CHECK_OP(size_t{c.event}, <, events.size());
  return events[c.event];
}

const SimGraph& SimDevice::Impl::alive(GraphId graph) const {
  REDECODE_CHECK_OP(graph, >, 0u);
  REDECODE_CHECK_OP(size_t{graph}, <=, graphs.size());
  REDECODE_CHECK(graphs[graph - 1] != nullptr);
  return *graphs[graph - 1];
}

void SimDevice::Impl::issue_free(const Program& program, const Bindings& bindings,
                                 const Command& c) {
  if (!options.poison || c.buffer.is_persistent()) return;
  const Binding& binding = bindings.of(c.buffer);
  if (binding.block == kNoBlock || deferred_frees[c.buffer.index()] != 0) return;
  queues.issue_poison(program.transients[c.buffer.index()].stream, binding.address,
                      binding.place.size_bytes);
}

void SimDevice::Impl::issue(const Program& program, const Bindings& bindings, uint32_t index,
                            Order& order, const Audience& audience) {
  const Command& c = program.commands[index];
  switch (c.kind) {
    case CommandKind::launch:
    case CommandKind::copy:
    case CommandKind::fill:
      queues.issue_op(c.stream, queues.arena().resolve(kernels, program, bindings, index), audience,
                      c.before_wait);
      return;
    case CommandKind::host: {
      queues.arena().run(queues.arena().resolve(kernels, program, bindings, index), exec);
      if (audience.observer != nullptr) audience.observer->ran(program, bindings, index);
      return;
    }
    case CommandKind::record:
      event_of(c) = queues.issue_record(c.stream);
      return;
    case CommandKind::wait:
      queues.issue_wait(c.stream, event_of(c));
      return;
    case CommandKind::sync:
      queues.run_stream(c.stream, order);
      return;
    case CommandKind::free:
      issue_free(program, bindings, c);
      return;
    case CommandKind::record_stream:
      if (!c.buffer.is_persistent() && c.stream != program.transients[c.buffer.index()].stream) {
        deferred_frees[c.buffer.index()] = 1;
      }
      return;
    case CommandKind::allocate:
      return;
  }
  REDECODE_CHECK(false);
}

SimDevice::SimDevice(const KernelTable& kernels, Exec& exec, SimOptions options)
    : impl_(std::make_unique<Impl>(kernels, exec, options)) {}

SimDevice::~SimDevice() = default;

std::byte* SimDevice::reserve(uint64_t size_bytes) {
  if (size_bytes == 0 || size_bytes > UINT64_MAX - kHugePageBytes) return nullptr;
  const uint64_t unit = size_bytes < kHugePageBytes ? kAlignmentBytes : kHugePageBytes;
  const uint64_t rounded = (size_bytes + unit - 1) / unit * unit;
  auto* const base = static_cast<std::byte*>(std::aligned_alloc(unit, rounded));
  if (base == nullptr) return nullptr;
  ask_for_huge_pages(base, rounded);
  std::memset(base, std::to_integer<int>(kUnwrittenByte), rounded);
  impl_->segments.emplace_back(base);
  return base;
}

void SimDevice::release(std::byte* base) {
  auto& segments = impl_->segments;
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [base](const Segment& segment) { return segment.get() == base; });
  REDECODE_CHECK(found != segments.end());
  segments.erase(found);
}

void SimDevice::submit(const Program& program, const Bindings& bindings, Order& order,
                       Observer* observer) {
  Impl& impl = *impl_;
  order.begin_program(program, impl.queues.start());
  impl.events.assign(program.event_count, kNeverRecorded);
  impl.deferred_frees.assign(program.transients.size(), 0);
  Audience audience;
  if (observer != nullptr) audience = {observer, &program, &bindings};
  const bool paced = order.host_paced();
  for (uint32_t index = 0; index < program.commands.size(); ++index) {
    impl.issue(program, bindings, index, order, audience);
    if (paced) impl.queues.run_ready(order);
  }
}

CaptureResult SimDevice::capture(const Program& program, const Bindings& bindings) {
  auto graph = std::make_unique<SimGraph>();
  CaptureResult result = capture_graph(impl_->kernels, program, bindings, *graph);
  if (result.status == CaptureStatus::ok) {
    impl_->graphs.push_back(std::move(graph));
    result.graph = static_cast<GraphId>(impl_->graphs.size());
  }
  return result;
}

void SimDevice::launch(GraphId graph, Order& order, Observer* observer) {
  order.begin_program(impl_->alive(graph).program, impl_->queues.start());
  impl_->queues.issue_graph(0, impl_->alive(graph), observer);
  if (order.host_paced()) impl_->queues.run_ready(order);
}

GraphStats SimDevice::graph_stats(GraphId graph) const { return impl_->alive(graph).stats(); }

void SimDevice::destroy(GraphId graph) {
  impl_->alive(graph);
  auto& slot = impl_->graphs[graph - 1];
  if (impl_->queues.idle()) {
    slot.reset();
  } else {
    impl_->destroyed.push_back(std::move(slot));
  }
}

void SimDevice::sync(Order& order, Observer* observer) {
  impl_->queues.run_all(order, observer);
  impl_->destroyed.clear();
}

void SimDevice::write(std::byte* address, std::span<const std::byte> bytes) {
  REDECODE_CHECK(impl_->queues.idle());
  if (!bytes.empty()) std::memcpy(address, bytes.data(), bytes.size());
}

void SimDevice::read(const std::byte* address, std::span<std::byte> bytes) const {
  REDECODE_CHECK(impl_->queues.idle());
  if (!bytes.empty()) std::memcpy(bytes.data(), address, bytes.size());
}

}  // namespace redecode
