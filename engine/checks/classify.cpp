#include "engine/checks/classify.h"

#include <algorithm>

namespace redecode {
namespace {

const Command* command_of(StepIndex step, const Program& program, const FindingSide& side) {
  if (side.op.empty() || side.step != step || side.command >= program.commands.size())
    return nullptr;
  return &program.commands[side.command];
}

template <class F>
bool any_region(const Program& program, const Command& c, F&& f) {
  return std::ranges::any_of(program.operands_of(c), f) ||
         std::ranges::any_of(program.touched_of(c), f);
}

bool touches_pages(const Program& program, const Command* c, const std::string& buffer) {
  return c != nullptr && any_region(program, *c, [&](const Region& r) {
           if (program.name_of(r.buffer) != buffer) return false;
           return r.request != UINT32_MAX ||
                  (r.buffer.is_persistent() &&
                   (*program.persistents)[r.buffer.index()].page_bytes != 0);
         });
}

// The later side's stream waits, between the two, for an event that is recorded more than once.
bool waits_for_recycled_event(const Program& program, const Finding& f) {
  std::vector<uint32_t> records(program.event_count);
  for (const Command& c : program.commands)
    if (c.kind == CommandKind::record) ++records[c.event];
  const uint32_t begin = std::min(f.first.command, f.second.command);
  const uint32_t end = std::max(f.first.command, f.second.command);
  for (uint32_t i = begin; i < end; ++i) {
    const Command& c = program.commands[i];
    if (c.kind == CommandKind::wait && c.stream == f.second.stream && records[c.event] > 1)
      return true;
  }
  return false;
}

std::string_view race_check(StepIndex step, const Program& program, const Finding& f) {
  const Command* first = command_of(step, program, f.first);
  const Command* second = command_of(step, program, f.second);
  for (const Command* c : {first, second})
    if (c != nullptr && c->before_wait) return "pdl";
  if (f.first.generation != 0 && f.second.generation != 0 &&
      f.first.generation != f.second.generation)
    return "pool-lifetime";
  const bool host_writes = (f.first.stream == kHost && writes(f.first.access)) ||
                           (f.second.stream == kHost && writes(f.second.access));
  if (host_writes) return "input-refresh";
  if (first != nullptr && second != nullptr && waits_for_recycled_event(program, f))
    return "event-generation";
  const bool outside = f.first.stream == kHost || f.second.stream == kHost ||
                       program.is_outside(static_cast<StreamId>(f.first.stream)) ||
                       program.is_outside(static_cast<StreamId>(f.second.stream));
  if (outside && (touches_pages(program, first, f.first.buffer) ||
                  touches_pages(program, second, f.second.buffer)))
    return "kv-in-flight";
  return "race";
}

bool writes_buffer(const Program& program, const Command* c, const std::string& buffer) {
  return c != nullptr && any_region(program, *c, [&](const Region& r) {
           return writes(r.access) && program.name_of(r.buffer) == buffer;
         });
}

// The wanted version was there, and was overwritten before the reader came.
bool lapped(const Program& program, const Finding& f) {
  for (uint32_t i = 0; i < f.first.command && i < program.commands.size(); ++i) {
    const bool made = any_region(program, program.commands[i], [&](const Region& r) {
      return writes(r.access) && r.version != 0 && r.version == f.second.version &&
             program.name_of(r.buffer) == f.second.buffer;
    });
    if (made) return true;
  }
  return false;
}

std::string_view stale_check(StepIndex step, const Program& program, const Finding& f) {
  const Command* writer = command_of(step, program, f.first);
  const Command* reader = command_of(step, program, f.second);
  if (writer == nullptr || reader == nullptr) return "content-version";
  if (f.first.buffer == f.second.buffer && writes_buffer(program, reader, f.second.buffer) &&
      writes_buffer(program, writer, f.first.buffer) &&
      any_region(program, *writer, [&](const Region& r) {
        return reads(r.access) && program.name_of(r.buffer) == f.first.buffer;
      }))
    return "counter-rearm";
  if (f.second.version != 0 && lapped(program, f)) return "ring-slot";
  return "content-version";
}

}  // namespace

void name_checks(StepIndex step, const Program& program, std::span<Finding> findings) {
  for (Finding& f : findings) {
    if (!f.check.empty()) continue;
    if (f.kind == FindingKind::race)
      f.check = race_check(step, program, f);
    else if (f.kind == FindingKind::stale)
      f.check = stale_check(step, program, f);
    else if (f.kind == FindingKind::frozen && f.first.op == "sample")
      f.check = "generator-offset";
    else if (f.kind == FindingKind::use_after_free && f.first.generation == 0)
      f.check = "frozen-address";
    else
      f.check = check_of(f);
  }
}

}  // namespace redecode
