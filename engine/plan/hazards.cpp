#include "engine/plan/hazards.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/plan/access_history.h"
#include "engine/plan/findings_of.h"
#include "engine/plan/ordering.h"
#include "traces/check.h"

namespace redecode {
namespace {

constexpr uint32_t kNotFreed = UINT32_MAX;

struct TransientState {
  OwnerId owner = 0;
  uint32_t freed_by = kNotFreed;
};

bool touches_memory(CommandKind kind) {
  return kind == CommandKind::launch || kind == CommandKind::copy || kind == CommandKind::fill ||
         kind == CommandKind::host;
}

// Reads come before updates, updates before writes, so that a command is judged by what it found.
int pass_of(Access access) {
  if (access == Access::read) return 0;
  return access == Access::update ? 1 : 2;
}

}  // namespace

struct HazardChecker::Impl {
  explicit Impl(RacePairs pairs) : history(pairs) {}

  Ordering ordering;
  AccessHistory history;
  OwnNames names;
  OwnerId next_owner = 0;
  std::vector<uint32_t> persistent_freed_by;  // by BufferId::index()

  // Ids of the newest name table's strings, filled as they are met.
  std::shared_ptr<const NameTable> table;
  std::vector<uint32_t> own_id_of;

  // Of the program being added.
  StepIndex step = 0;
  const Program* program = nullptr;
  const ExtentTable* extents = nullptr;
  std::vector<TransientState> transients;
  std::vector<Finding>* out = nullptr;

  // Of the command being added; members to keep their capacity.
  std::vector<Conflict> conflicts;
  std::vector<BadContent> bad_contents;
  std::vector<std::pair<uint32_t, uint32_t>> reported_freed;  // buffer value, index into *out

  // Of the program being added: reads that race, and the operands behind content findings.
  using Read = std::pair<uint32_t, uint32_t>;  // command, operand
  std::set<Read> racing_reads;
  std::vector<std::pair<size_t, Read>> judged_reads;  // index into *out

  void begin(const Program& next);
  void command(uint32_t index);
  void memory_command(uint32_t index);
  void region(const Region& r, const Touch& act, const Clock& clock);
  void allocate(BufferId buffer);
  uint32_t& freed_by(BufferId buffer);
  void note_reads(size_t first_finding);
  void drop_contents_of_racing_reads();
  void report_freed(const Region& r, uint64_t size_bytes, const Touch& touch, uint32_t freed);
  uint32_t own_id(NameId name);
};

uint32_t HazardChecker::Impl::own_id(NameId name) {
  constexpr uint32_t kUnknown = UINT32_MAX;
  if (name >= own_id_of.size()) own_id_of.resize(table->names.size(), kUnknown);
  REDECODE_CHECK_OP(name, <, own_id_of.size());
  uint32_t& id = own_id_of[name];
  if (id == kUnknown) id = names.id_of((*table)[name]);
  return id;
}

void HazardChecker::Impl::begin(const Program& next) {
  REDECODE_CHECK(next.names != nullptr);
  if (table != next.names) {
    table = next.names;
    own_id_of.clear();
  }
  program = &next;
  transients.assign(next.transients.size(), {});
  for (TransientState& t : transients) t.owner = next_owner++;
  if (next.persistents != nullptr && persistent_freed_by.size() < next.persistents->size())
    persistent_freed_by.resize(next.persistents->size(), kNotFreed);
}

uint32_t& HazardChecker::Impl::freed_by(BufferId buffer) {
  if (buffer.is_persistent()) {
    REDECODE_CHECK_OP(buffer.index(), <, persistent_freed_by.size());
    return persistent_freed_by[buffer.index()];
  }
  REDECODE_CHECK_OP(buffer.index(), <, transients.size());
  return transients[buffer.index()].freed_by;
}

void HazardChecker::Impl::allocate(BufferId buffer) {
  freed_by(buffer) = kNotFreed;
  if (!buffer.is_persistent()) transients[buffer.index()].owner = next_owner++;
  const Extent& extent = extents->of(buffer);
  history.allocate(extent.begin, extent.begin + extent.size_bytes);
}

void HazardChecker::Impl::report_freed(const Region& r, uint64_t size_bytes, const Touch& touch,
                                       uint32_t freed) {
  for (const auto& [buffer, finding] : reported_freed) {
    if (buffer != r.buffer.value) continue;
    (*out)[finding].size_bytes += size_bytes;
    return;
  }
  reported_freed.emplace_back(r.buffer.value, static_cast<uint32_t>(out->size()));
  out->push_back(use_after_free(touch, r.offset_bytes, size_bytes, freed, names));
}

void HazardChecker::Impl::region(const Region& r, const Touch& act, const Clock& clock) {
  const uint32_t freed = freed_by(r.buffer);
  const Extent& extent = extents->of(r.buffer);
  const bool persistent = r.buffer.is_persistent();
  Touch touch = act;
  touch.owner =
      persistent ? kPersistentOwnerBit | r.buffer.index() : transients[r.buffer.index()].owner;
  touch.generation = extent.generation;
  touch.buffer_begin = extent.begin;
  touch.buffer = own_id(persistent ? (*program->persistents)[r.buffer.index()].name
                                   : program->transients[r.buffer.index()].name);
  touch.request = r.request;
  touch.access = r.access;
  touch.version = r.version;

  const uint64_t room =
      extent.size_bytes > r.offset_bytes ? extent.size_bytes - r.offset_bytes : uint64_t{0};
  const uint64_t inside = std::min(r.size_bytes, room);
  if (inside < r.size_bytes)
    out->push_back(leaves_buffer(touch, r.offset_bytes, r.size_bytes, extent.size_bytes, names));
  if (inside == 0) return;
  if (freed != kNotFreed) report_freed(r, inside, touch, freed);

  AccessHistory::Judgement judgement;
  judgement.judge_content = (freed == kNotFreed || r.version != 0) && r.request == kNoRequest;
  if (persistent) {
    judgement.initially_written = (*program->persistents)[r.buffer.index()].written;
    judgement.initial_version = (*program->persistents)[r.buffer.index()].version;
  }
  const uint64_t begin = extent.begin + r.offset_bytes;
  history.touch(touch, clock, ordering.settled(), begin, begin + inside, judgement, conflicts,
                bad_contents);
}

void HazardChecker::Impl::memory_command(uint32_t index) {
  const Command& c = program->commands[index];
  const StreamId stream = c.kind == CommandKind::host ? kHost : c.stream;
  Touch act;
  const bool prologue = c.kind == CommandKind::launch && c.before_wait;
  if (prologue)
    act.epoch = ordering.act_before_wait(stream);
  else
    act.epoch =
        c.kind == CommandKind::launch ? ordering.act_of_kernel(stream) : ordering.act(stream);
  const Clock& clock = prologue ? ordering.prologue_clock() : ordering.clock_of(stream);
  act.step = step;
  act.command = index;
  act.op = own_id(c.name);
  act.layer = c.layer;
  act.stream = stream;
  conflicts.clear();
  bad_contents.clear();
  reported_freed.clear();
  for (int pass = 0; pass < 3; ++pass) {
    act.operand = 0;
    for (const auto& ranges : {program->operands_of(c), program->touched_of(c)}) {
      for (const Region& r : ranges) {
        if (r.access != Access::none && pass_of(r.access) == pass) region(r, act, clock);
        ++act.operand;
      }
    }
  }
  for (const Conflict& conflict : conflicts)
    for (const Touch* side : {&conflict.first, &conflict.second})
      if (side->step == step && reads(side->access))
        racing_reads.emplace(side->command, side->operand);
  if (!conflicts.empty()) append_races(conflicts, names, *out);
  if (bad_contents.empty()) return;
  const size_t first_finding = out->size();
  append_bad_contents(bad_contents, names, *out);
  note_reads(first_finding);
}

// append_bad_contents leaves bad_contents sorted as it made findings of it: one a run of equal
// operand and writer.
void HazardChecker::Impl::note_reads(size_t first_finding) {
  size_t finding = first_finding;
  for (size_t i = 0; i < bad_contents.size(); ++i) {
    const BadContent& b = bad_contents[i];
    if (i > 0 && !same_content_finding(bad_contents[i - 1], b)) ++finding;
    if (judged_reads.empty() || judged_reads.back().first != finding)
      judged_reads.emplace_back(finding, Read{b.reader.command, b.reader.operand});
  }
  REDECODE_CHECK_OP(finding + 1, ==, out->size());
}

// A read that races is reported once, as the race.
void HazardChecker::Impl::drop_contents_of_racing_reads() {
  for (auto judged = judged_reads.rbegin(); judged != judged_reads.rend(); ++judged)
    if (racing_reads.contains(judged->second))
      out->erase(out->begin() + static_cast<std::ptrdiff_t>(judged->first));
}

void HazardChecker::Impl::command(uint32_t index) {
  const Command& c = program->commands[index];
  if (touches_memory(c.kind)) return memory_command(index);
  switch (c.kind) {
    case CommandKind::record:
      return ordering.record(c.stream, c.event);
    case CommandKind::wait:
      return ordering.wait(c.stream, c.event);
    case CommandKind::sync:
      return ordering.sync(c.stream);
    case CommandKind::allocate:
      return allocate(c.buffer);
    case CommandKind::free:
      freed_by(c.buffer) = index;
      return;
    default:
      return;  // record_stream concerns the pool alone
  }
}

HazardChecker::HazardChecker(RacePairs pairs) : impl_(std::make_unique<Impl>(pairs)) {}
HazardChecker::~HazardChecker() = default;
HazardChecker::HazardChecker(HazardChecker&&) noexcept = default;
HazardChecker& HazardChecker::operator=(HazardChecker&&) noexcept = default;

void HazardChecker::add(StepIndex step, const Program& program, const ExtentTable& extents,
                        Submission submission, std::vector<Finding>& out) {
  REDECODE_CHECK_OP(extents.transients.size(), >=, program.transients.size());
  if (program.persistents != nullptr)
    REDECODE_CHECK_OP(extents.persistents.size(), >=, program.persistents->size());
  impl_->step = step;
  impl_->extents = &extents;
  impl_->out = &out;
  impl_->begin(program);
  impl_->racing_reads.clear();
  impl_->judged_reads.clear();
  impl_->ordering.begin_program(submission, program.outside_streams);
  for (uint32_t i = 0; i < program.commands.size(); ++i) impl_->command(i);
  impl_->ordering.end_program();
  impl_->drop_contents_of_racing_reads();
}

void HazardChecker::sync_all() { impl_->ordering.sync_all(); }

}  // namespace redecode
