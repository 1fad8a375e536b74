// tests/plan/tiny_program.h - programs in a few words for hazard tests, and their findings as
// strings.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/hazards.h"

namespace redecode {

// Operands: r("x") all of buffer x, r("x", 16, 8) eight bytes from its byte 16.
struct Operand {
  Access access;
  std::string buffer;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = UINT64_MAX;  // UINT64_MAX: to the end
  uint32_t request = UINT32_MAX;
};
inline Operand r(std::string b, uint64_t offset = 0, uint64_t size = UINT64_MAX) {
  return {Access::read, std::move(b), offset, size};
}
inline Operand w(std::string b, uint64_t offset = 0, uint64_t size = UINT64_MAX) {
  return {Access::write, std::move(b), offset, size};
}
inline Operand u(std::string b, uint64_t offset = 0, uint64_t size = UINT64_MAX) {
  return {Access::update, std::move(b), offset, size};
}
inline Operand tmp(std::string b, uint64_t offset = 0, uint64_t size = UINT64_MAX) {
  return {Access::scratch, std::move(b), offset, size};
}

// Streams of the tests: M is the main stream.
inline constexpr StreamId M = 0, S = 1, S2 = 2, S3 = 3, C = 4;
inline constexpr uint64_t kDefaultBytes = 64;
// Places of the tests: far enough apart never to overlap.
inline constexpr uint64_t P0 = 0x1000, P1 = 0x2000, P2 = 0x3000, P3 = 0x4000;

class Tiny {
 public:
  Tiny() { program.names = names_; }

  // A persistent buffer; without a place it lies apart from all others.
  Tiny& persist(const std::string& name, uint64_t at = 0, bool written = true,
                uint64_t size = kDefaultBytes) {
    ids_[name] = BufferId::persistent(static_cast<uint32_t>(persistents_.size()));
    if (at == 0) at = 0x100000 + 0x1000 * persistents_.size();
    extents.persistents.push_back({at, size, 0});
    persistents_.push_back({names_->intern(name), size, 0, written});
    return *this;
  }
  Tiny& alloc(StreamId stream, const std::string& name, uint64_t at,
              uint64_t size = kDefaultBytes) {
    const auto id = BufferId::transient(static_cast<uint32_t>(program.transients.size()));
    ids_[name] = id;
    program.transients.push_back({names_->intern(name), 0, stream, size});
    extents.transients.push_back({at, size, ++generation_});
    command(CommandKind::allocate, stream, name).buffer = id;
    return *this;
  }
  Tiny& free(const std::string& name) {
    command(CommandKind::free, 0, name).buffer = ids_.at(name);
    return *this;
  }
  Tiny& record_stream(const std::string& name, StreamId user) {
    command(CommandKind::record_stream, user, name).buffer = ids_.at(name);
    return *this;
  }
  Tiny& op(StreamId stream, const std::string& name, const std::vector<Operand>& operands) {
    return act(CommandKind::launch, stream, name, operands);
  }
  Tiny& copy(StreamId stream, const std::string& name, const std::string& from,
             const std::string& to) {
    return act(CommandKind::copy, stream, name, {r(from), w(to)});
  }
  Tiny& fill(StreamId stream, const std::string& name, const Operand& what) {
    return act(CommandKind::fill, stream, name, {what});
  }
  Tiny& host(const std::string& name, const std::vector<Operand>& operands) {
    return act(CommandKind::host, kHost, name, operands);
  }
  // An operand passed by address, with the exact ranges apart, as paged buffers are.
  Tiny& paged(StreamId stream, const std::string& name, const std::string& buffer,
              const std::vector<Operand>& touched) {
    Command& c = command(CommandKind::launch, stream, name);
    c.first_region = static_cast<uint32_t>(program.regions.size());
    c.region_count = 1;
    c.first_touched = static_cast<uint32_t>(program.touched.size());
    c.touched_count = static_cast<uint32_t>(touched.size());
    program.regions.push_back({ids_.at(buffer), Access::none, 0, 0, 0, UINT32_MAX});
    for (const Operand& o : touched) program.touched.push_back(region(o));
    return *this;
  }
  Tiny& rec(StreamId stream, EventId event) {
    command(CommandKind::record, stream, "record").event = event;
    return *this;
  }
  Tiny& wait(StreamId stream, EventId event) {
    command(CommandKind::wait, stream, "wait").event = event;
    return *this;
  }
  // `later` waits for an event recorded on `earlier` now.
  Tiny& join(StreamId later, StreamId earlier) {
    const auto event = static_cast<EventId>(1000 + joins_++);
    return rec(earlier, event).wait(later, event);
  }
  Tiny& sync(StreamId stream) {
    command(CommandKind::sync, stream, "sync");
    return *this;
  }
  // The last command's layer, or one more argument of it.
  Tiny& layer(uint16_t layer) {
    program.commands.back().layer = layer;
    return *this;
  }
  Tiny& arg(int64_t value, ArgKind kind) {
    Command& c = program.commands.back();
    if (c.arg_count++ == 0) c.first_arg = static_cast<uint32_t>(program.args.size());
    program.args.push_back({value, kind});
    return *this;
  }

  const Program& done() {
    program.persistents = std::make_shared<const std::vector<PersistentBuffer>>(persistents_);
    return program;
  }

  Program program;
  ExtentTable extents;

 private:
  Command& command(CommandKind kind, StreamId stream, const std::string& name) {
    Command c;
    c.kind = kind;
    c.stream = stream;
    c.name = names_->intern(name);
    program.commands.push_back(c);
    return program.commands.back();
  }
  Region region(const Operand& o) const {
    const BufferId id = ids_.at(o.buffer);
    const uint64_t size =
        o.size_bytes == UINT64_MAX ? extents.of(id).size_bytes - o.offset_bytes : o.size_bytes;
    return {id, o.access, o.offset_bytes, size, 0, o.request};
  }
  Tiny& act(CommandKind kind, StreamId stream, const std::string& name,
            const std::vector<Operand>& operands) {
    Command& c = command(kind, stream, name);
    c.first_region = static_cast<uint32_t>(program.regions.size());
    c.region_count = static_cast<uint32_t>(operands.size());
    for (const Operand& o : operands) program.regions.push_back(region(o));
    return *this;
  }

  std::shared_ptr<NameTable> names_ = std::make_shared<NameTable>();
  std::vector<PersistentBuffer> persistents_;
  std::map<std::string, BufferId> ids_;
  uint64_t generation_ = 0;
  uint32_t joins_ = 0;
};

// "race a,b", "use_after_free a", "unwritten a", "stale writer,reader", "foreign a".
inline std::vector<std::string> in_short(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& f : findings) {
    out.push_back(std::string(to_text(f.kind)) + ' ' + f.first.op);
    if (!f.second.op.empty()) out.back() += ',' + f.second.op;
  }
  return out;
}

using Short = std::vector<std::string>;

inline std::vector<Finding> findings(Tiny& tiny, Submission submission) {
  HazardChecker checker;
  std::vector<Finding> out;
  checker.add(0, tiny.done(), tiny.extents, submission, out);
  return out;
}
inline Short eager(Tiny& tiny) { return in_short(findings(tiny, Submission::eager)); }
inline Short graph(Tiny& tiny) { return in_short(findings(tiny, Submission::graph)); }

// Several steps through one checker.
class Steps {
 public:
  Short add(Tiny& tiny, Submission submission) {
    last.clear();
    checker.add(next_step_++, tiny.done(), tiny.extents, submission, last);
    return in_short(last);
  }
  HazardChecker checker;
  std::vector<Finding> last;

 private:
  StepIndex next_step_ = 0;
};

}  // namespace redecode
