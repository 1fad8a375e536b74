#include "engine/plan/emitter.h"

#include <utility>

#include "traces/check.h"

namespace redecode {

Emitter::Emitter(std::shared_ptr<const NameTable> names,
                 std::shared_ptr<const std::vector<PersistentBuffer>> persistents,
                 const StreamPlan& plan)
    : plan_(plan) {
  program_.names = std::move(names);
  program_.persistents = std::move(persistents);
  program_.stream_count = plan.stream_count;
  program_.commands.reserve(256);
  program_.regions.reserve(768);
  program_.args.reserve(768);
}

Command& Emitter::append(CommandKind kind, StreamId stream, NameId name) {
  Command c;
  c.kind = kind;
  c.stream = stream;
  c.name = name;
  c.layer = layer_;
  c.first_region = static_cast<uint32_t>(program_.regions.size());
  c.first_touched = static_cast<uint32_t>(program_.touched.size());
  c.first_arg = static_cast<uint32_t>(program_.args.size());
  program_.commands.push_back(c);
  return program_.commands.back();
}

BufferId Emitter::allocate(Lane owner, NameId name, uint64_t size_bytes) {
  REDECODE_CHECK_OP(size_bytes, >, 0u);
  const auto id = BufferId::transient(static_cast<uint32_t>(program_.transients.size()));
  program_.transients.push_back({name, layer_, plan_.of(owner), size_bytes});
  append(CommandKind::allocate, plan_.of(owner), name).buffer = id;
  return id;
}

void Emitter::free(BufferId buffer) {
  const auto& t = program_.transients.at(buffer.index());
  append(CommandKind::free, t.stream, t.name).buffer = buffer;
}

void Emitter::record_stream(BufferId buffer, Lane user) {
  const auto& t = program_.transients.at(buffer.index());
  if (plan_.of(user) == t.stream) return;
  append(CommandKind::record_stream, plan_.of(user), t.name).buffer = buffer;
}

void Emitter::launch(Lane lane, KernelId kernel, NameId name,
                     std::initializer_list<Region> operands, std::initializer_list<Arg> args,
                     std::span<const Region> touched) {
  Command& c = append(CommandKind::launch, plan_.of(lane), name);
  c.kernel = kernel;
  c.region_count = static_cast<uint32_t>(operands.size());
  c.touched_count = static_cast<uint32_t>(touched.size());
  c.arg_count = static_cast<uint32_t>(args.size());
  program_.regions.insert(program_.regions.end(), operands.begin(), operands.end());
  program_.touched.insert(program_.touched.end(), touched.begin(), touched.end());
  program_.args.insert(program_.args.end(), args.begin(), args.end());
}

void Emitter::fill(Lane lane, NameId name, const Region& region, uint8_t byte) {
  Command& c = append(CommandKind::fill, plan_.of(lane), name);
  c.region_count = 1;
  c.arg_count = 1;
  program_.regions.push_back(region);
  program_.args.push_back({byte, ArgKind::shape});
}

void Emitter::copy(Lane lane, NameId name, const Region& from, const Region& to) {
  REDECODE_CHECK_OP(from.size_bytes, ==, to.size_bytes);
  Command& c = append(CommandKind::copy, plan_.of(lane), name);
  c.region_count = 2;
  program_.regions.push_back(from);
  program_.regions.push_back(to);
}

void Emitter::host(NameId name, std::initializer_list<Region> regions) {
  Command& c = append(CommandKind::host, kHost, name);
  c.kernel = kNoKernel;
  c.region_count = static_cast<uint32_t>(regions.size());
  program_.regions.insert(program_.regions.end(), regions.begin(), regions.end());
}

void Emitter::sync(Lane lane, NameId name) { append(CommandKind::sync, plan_.of(lane), name); }

Mark Emitter::record(Lane lane, NameId name) {
  const StreamId stream = plan_.of(lane);
  if (plan_.stream_count == 1) return {stream, 0};
  const auto event = static_cast<EventId>(program_.event_count++);
  append(CommandKind::record, stream, name).event = event;
  return {stream, event};
}

void Emitter::wait(Lane lane, const Mark& mark, NameId name) {
  if (plan_.of(lane) == mark.stream) return;
  append(CommandKind::wait, plan_.of(lane), name).event = mark.event;
}

void Emitter::wait_lane(Lane after, Lane before, NameId name) {
  if (plan_.of(after) == plan_.of(before)) return;
  wait(after, record(before, name), name);
}

Program Emitter::take() { return std::exchange(program_, Program{}); }

}  // namespace redecode
