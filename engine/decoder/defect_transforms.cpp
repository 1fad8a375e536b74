#include "engine/decoder/defect_transforms.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/kernels/kernel_table.h"
#include "traces/check.h"

namespace redecode::defect {
namespace {

using At = std::vector<Command>::iterator;

bool named(const Program& p, const Command& c, std::string_view name) {
  return (*p.names)[c.name] == name;
}

bool uses(const Program& p, const Command& c, BufferId buffer) {
  const auto same = [&](const Region& r) { return r.buffer == buffer; };
  return std::ranges::any_of(p.operands_of(c), same) || std::ranges::any_of(p.touched_of(c), same);
}

At find(Program& p, CommandKind kind, std::string_view name) {
  return std::ranges::find_if(
      p.commands, [&](const Command& c) { return c.kind == kind && named(p, c, name); });
}

// Moves each free of a buffer of this name up to right behind the last command that uses it.
void free_behind_last(Program& p, std::string_view buffer_name) {
  for (size_t i = 0; i < p.commands.size(); ++i) {
    const Command freed = p.commands[i];
    if (freed.kind != CommandKind::free || !named(p, freed, buffer_name)) continue;
    size_t last = i;
    while (last > 0 && !uses(p, p.commands[last - 1], freed.buffer)) --last;
    const auto at = p.commands.begin() + static_cast<std::ptrdiff_t>(last);
    std::rotate(at, p.commands.begin() + static_cast<std::ptrdiff_t>(i),
                p.commands.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// Drops the first command of this kind and name; false when the program has none (single stream).
bool drop_first(Program& p, CommandKind kind, std::string_view name) {
  const auto at = find(p, kind, name);
  if (at == p.commands.end()) return false;
  p.commands.erase(at);
  return true;
}

EventId new_event(Program& p) { return static_cast<EventId>(p.event_count++); }

Command event_command(CommandKind kind, StreamId stream, EventId event, const Command& beside) {
  Command c;
  c.kind = kind;
  c.stream = stream;
  c.event = event;
  c.name = beside.name;
  c.layer = beside.layer;
  return c;
}

// `after` continues once `before` has done what it has so far; inserted before `at`.
At insert_edge(Program& p, At at, StreamId after, StreamId before) {
  const Command beside = at == p.commands.end() ? p.commands.back() : *at;
  const EventId event = new_event(p);
  at = p.commands.insert(at, event_command(CommandKind::record, before, event, beside)) + 1;
  return p.commands.insert(at, event_command(CommandKind::wait, after, event, beside)) + 1;
}

// A stream of its own for this program.
std::optional<StreamId> new_stream(Program& p) {
  if (p.stream_count <= 1 || p.stream_count == kMaxStreams) return std::nullopt;
  return static_cast<StreamId>(p.stream_count++);
}

Arg& own_arg(Program& p, Command& c, size_t index) {
  const auto args = p.args_of(c);
  std::vector<Arg> copy(args.begin(), args.end());
  c.first_arg = static_cast<uint32_t>(p.args.size());
  p.args.insert(p.args.end(), copy.begin(), copy.end());
  return p.args[c.first_arg + index];
}

void append_arg(Program& p, Command& c, Arg arg) {
  const auto args = p.args_of(c);
  std::vector<Arg> longer(args.begin(), args.end());
  longer.push_back(arg);
  c.first_arg = static_cast<uint32_t>(p.args.size());
  c.arg_count = static_cast<uint32_t>(longer.size());
  p.args.insert(p.args.end(), longer.begin(), longer.end());
}

}  // namespace

void early_free(Program& p, const Batch&, const Model&) { free_behind_last(p, "index_q"); }

void block_freed_in_flight(Program& p, const Batch&, const Model&) { free_behind_last(p, "x"); }

void dropped_join(Program& p, const Batch&, const Model&) {
  if (!drop_first(p, CommandKind::wait, "join.indexer"))
    drop_first(p, CommandKind::wait, "join.kv");
}

// Of a stream that has joined before: dropping the wait by which it joins is an error of capture,
// which CUDA itself reports.
void dropped_fork(Program& p, const Batch&, const Model&) {
  std::array<bool, kMaxStreams> joined{};
  for (auto c = p.commands.begin(); c != p.commands.end(); ++c) {
    if (c->kind != CommandKind::wait) continue;
    const bool fork = named(p, *c, "q_lora_ready") || named(p, *c, "fork.kv");
    if (fork && joined.at(c->stream)) {
      p.commands.erase(c);
      return;
    }
    joined.at(c->stream) = true;
  }
}

// The main stream records the event of the side stream's end anew before it waits for it.
void rerecorded_event(Program& p, const Batch&, const Model&) {
  auto wait = find(p, CommandKind::wait, "join.indexer");
  if (wait == p.commands.end()) wait = find(p, CommandKind::wait, "join.kv");
  if (wait == p.commands.end()) return;
  p.commands.insert(wait, event_command(CommandKind::record, wait->stream, wait->event, *wait));
}

// The KV of the first layer arrives on a transfer stream that joins at the end of the step only.
void late_kv_handover(Program& p, const Batch&, const Model&) {
  auto store = find(p, CommandKind::launch, "kv.store");
  if (store == p.commands.end()) store = find(p, CommandKind::launch, "kv_store");
  if (store == p.commands.end() || store->stream == 0) return;
  const auto transfer = new_stream(p);
  if (!transfer) return;
  const StreamId from = store->stream;
  store = insert_edge(p, store, *transfer, from);
  store->stream = *transfer;
  p.outside_streams |= uint32_t{1} << *transfer;
  insert_edge(p, p.commands.end(), 0, *transfer);
}

// The first kernel that reads what the kernel right before it on the main stream wrote.
void missing_pdl_wait(Program& p, const Batch&, const Model&) {
  const Command* before = nullptr;
  for (Command& c : p.commands) {
    if (c.kind != CommandKind::launch || c.stream != 0) continue;
    if (before != nullptr) {
      for (const Region& r : p.operands_of(c)) {
        const bool produced = std::ranges::any_of(p.operands_of(*before), [&](const Region& w) {
          return w.buffer == r.buffer && writes(w.access);
        });
        if (!reads(r.access) || r.buffer.is_persistent() || !produced) continue;
        c.before_wait = true;
        return;
      }
    }
    before = &c;
  }
}

// The residual's buffer goes back to the pool before the second layer: kernels go on by the old
// address.
void moved_workspace(Program& p, const Batch&, const Model&) {
  const auto freed = find(p, CommandKind::free, "h");
  const auto second = std::ranges::find_if(
      p.commands, [](const Command& c) { return c.layer == 1 && c.kind == CommandKind::allocate; });
  if (freed == p.commands.end() || second >= freed) return;
  std::rotate(second, freed, freed + 1);
}

// Another graph of the same pool runs beside this one: to it, a block that this one is done with is
// free from the start.
void overlapping_graphs(Program& p, const Batch&, const Model&) {
  // The first block that the main stream gives back: it is handed out again at once.
  auto freed = std::ranges::find_if(p.commands, [&](const Command& c) {
    return c.kind == CommandKind::free && p.transients[c.buffer.index()].stream == 0;
  });
  if (freed == p.commands.end()) return;
  const auto other = new_stream(p);
  if (!other) return;
  const BufferId shared = freed->buffer;
  const TransientBuffer taken = p.transients[shared.index()];
  const BufferId id = BufferId::transient(static_cast<uint32_t>(p.transients.size()));
  p.transients.push_back(taken);
  Command allocate = *freed, fill = *freed, free = *freed;
  allocate.kind = CommandKind::allocate;
  allocate.buffer = free.buffer = id;
  fill.kind = CommandKind::fill;
  fill.stream = *other;
  fill.buffer = {};
  fill.first_region = static_cast<uint32_t>(p.regions.size());
  fill.region_count = 1;
  p.regions.push_back({id, Access::write, 0, taken.size_bytes});
  fill.first_arg = static_cast<uint32_t>(p.args.size());
  fill.arg_count = 1;
  p.args.push_back({0, ArgKind::shape});
  const auto place = freed - p.commands.begin() + 1;
  p.commands.insert(p.commands.begin() + place, {allocate, fill, free});
  insert_edge(p, p.commands.end(), 0, *other);
  // It begins while this one is about to read the block for the last time.
  auto reader = p.commands.begin() + place - 1;
  while (reader != p.commands.begin() && !uses(p, *reader, shared)) --reader;
  insert_edge(p, reader, *other, 0);
}

void unwritten_scratch(Program& p, const Batch&, const Model&) {
  while (drop_first(p, CommandKind::fill, "moe.zero")) {
  }
}

void baked_position(Program& p, const Batch& batch, const Model& model) {
  for (auto& c : p.commands) {
    if (c.kind != CommandKind::launch || !named(p, c, "q_rope")) continue;
    c.kernel = model.kernels().rope_rebased;
    append_arg(p, c, {batch.rows.at(0).position, ArgKind::step_value});
  }
}

// The host shortens the attention window to the longest context; a graph keeps that of its capture.
void baked_branch(Program& p, const Batch& batch, const Model&) {
  constexpr size_t kWindowArg = 2;
  int64_t longest = 1;
  for (const Row& row : batch.rows) longest = std::max<int64_t>(longest, row.position + 1);
  for (auto& c : p.commands) {
    if (c.kind != CommandKind::launch || !named(p, c, "attention")) continue;
    Arg& window = own_arg(p, c, kWindowArg);
    window = {std::min(window.value, longest), ArgKind::step_value};
  }
}

void frozen_sampler_offset(Program& p, const Batch& batch, const Model& model) {
  if (batch.output_rows.empty()) return;
  for (auto& c : p.commands) {
    if (c.kind != CommandKind::launch || !named(p, c, "sample")) continue;
    c.kernel = model.kernels().sample_rebased;
    append_arg(p, c, {batch.rows.at(batch.output_rows.front()).position, ArgKind::step_value});
  }
}

void racy_topk_ties(Program& p, const Batch& batch, const Model& model) {
  constexpr uint32_t kManyRows = 16;
  for (auto& c : p.commands) {
    if (c.kind != CommandKind::launch || !named(p, c, "indexer.topk")) continue;
    c.kernel = model.kernels().topk_loose;
    append_arg(p, c, {batch.row_count() >= kManyRows ? 1 : 0, ArgKind::reduction});
  }
}

void reused_pinned(Program& p) {
  const auto copy = std::ranges::find(p.commands, CommandKind::copy, &Command::kind);
  REDECODE_CHECK(copy != p.commands.end());
  Command again;
  again.kind = CommandKind::host;
  again.kernel = kNoKernel;
  again.stream = kHost;
  again.name = p.commands.front().name;
  Region staging = p.operands_of(*copy)[0];
  staging.access = Access::write;
  again.first_region = static_cast<uint32_t>(p.regions.size());
  again.region_count = 1;
  p.regions.push_back(staging);
  again.first_arg = static_cast<uint32_t>(p.args.size());
  again.arg_count = 1;
  p.args.push_back({0, ArgKind::shape});
  p.commands.push_back(again);
}

}  // namespace redecode::defect
