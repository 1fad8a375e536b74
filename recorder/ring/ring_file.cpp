#include "recorder/ring/ring_file.h"

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>

#include "recorder/ring/breadcrumb.h"
#include "recorder/ring/shared_ring.h"
#include "traces/crc32c.h"
#include "traces/error.h"

namespace redecode {
namespace {

template <class T>
T load(const std::vector<uint8_t>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

uint64_t counter(const std::vector<uint8_t>& page, size_t offset) {
  return load<uint64_t>(page, offset);
}

// Steps that are in the trace already are passed over.
class OnlyNew final : public RecordTarget {
 public:
  OnlyNew(StepIndex next_step, RecordTarget& target) : next_step_(next_step), target_(target) {}
  void take(const Step& step) override { target_.take(step); }
  void take(const StepOutput& output) override {
    if (output.step >= next_step_) target_.take(output);
  }
  void take(const Event& event) override {
    if (event.before_step >= next_step_) target_.take(event);
  }
  void take(const Gap& gap) override { target_.take(gap); }

 private:
  StepIndex next_step_;
  RecordTarget& target_;
};

struct DeadRing {
  RingState state;
  std::vector<uint8_t> bytes;
  std::span<const uint8_t> left;
  bool has_steps = false;
};

bool holds_steps(std::span<const uint8_t> bytes) {
  RawRecord record;
  while (take_record(bytes, record))
    if (record.head.kind == RecordKind::step) return true;
  return false;
}

StepIndex index_of(const RawRecord& record) {
  StepIndex index = 0;
  if (record.bytes.size() >= sizeof(StepRecord))
    std::memcpy(&index, record.bytes.data() + offsetof(StepRecord, index), sizeof index);
  return index;
}

// Feeds records until the end, the first unsound one, or outputs whose step has not come.
void feed(DeadRing& ring, StepIndex next_step, Assembler& assembler, DrainResult& result) {
  RawRecord record;
  for (;;) {
    const std::span<const uint8_t> before = ring.left;
    if (!take_record(ring.left, record)) {
      result.unreadable_bytes += ring.left.size();
      ring.left = {};
      return;
    }
    if (record.head.kind == RecordKind::step && index_of(record) < next_step) {
      ++result.duplicates;
      continue;
    }
    switch (assembler.take(record)) {
      case Taken::done:
        ++result.records;
        break;
      case Taken::held:
        if (ring.has_steps) break;  // its step is gone
        ring.left = before;
        return;
      case Taken::unsound:
        result.unreadable_bytes += before.size();
        ring.left = {};
        return;
    }
  }
}

}  // namespace

RingFile::RingFile(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {
  name_ = source_->name();
  std::vector<uint8_t> page(kRingHeaderBytes);
  if (source_->read(0, page) != page.size())
    throw Error(ErrorCode::truncated, "file ends inside the header of a ring", name_);
  if (load<uint64_t>(page, offsetof(RingHeader, magic)) != kRingMagic)
    throw Error(ErrorCode::corrupt, "not a ring of the recorder", name_);
  const uint32_t version = load<uint32_t>(page, offsetof(RingHeader, version));
  if (version != kRingVersion)
    throw Error(ErrorCode::version,
                "ring version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(kRingVersion),
                name_);
  if (crc32c(page.data(), offsetof(RingHeader, crc)) !=
      load<uint32_t>(page, offsetof(RingHeader, crc)))
    throw Error(ErrorCode::corrupt, "header checksum of the ring does not match", name_);
  RingState& s = state_;
  s.ring_bytes = load<uint64_t>(page, offsetof(RingHeader, ring_bytes));
  s.pid = load<uint64_t>(page, offsetof(RingHeader, pid));
  s.lane = load<uint32_t>(page, offsetof(RingHeader, lane));
  s.started_unix_us = load<int64_t>(page, offsetof(RingHeader, started_unix_us));
  s.started_ns = load<uint64_t>(page, offsetof(RingHeader, started_ns));
  s.keeps_last = (load<uint32_t>(page, offsetof(RingHeader, flags)) & 1) != 0;
  s.head = counter(page, offsetof(RingHeader, head));
  s.tail = counter(page, offsetof(RingHeader, tail));
  s.steps_seen = counter(page, offsetof(RingHeader, steps_seen));
  s.steps_dropped = counter(page, offsetof(RingHeader, steps_dropped));
  s.pending_dropped = counter(page, offsetof(RingHeader, pending_dropped));
  s.pending_first = counter(page, offsetof(RingHeader, pending_first));
  s.pending_last = counter(page, offsetof(RingHeader, pending_last));
  s.pending_bytes = counter(page, offsetof(RingHeader, pending_bytes));
  if (!std::has_single_bit(s.ring_bytes) || s.ring_bytes < kMinRingBytes ||
      s.ring_bytes > kMaxRingBytes)
    throw Error(ErrorCode::limit, "ring of " + std::to_string(s.ring_bytes) + " bytes", name_);
  if (source_->size_bytes() < kRingHeaderBytes + s.ring_bytes)
    throw Error(ErrorCode::truncated, "file is shorter than its ring", name_);
  if (s.head - s.tail > s.ring_bytes || s.head % 8 != 0 || s.tail % 8 != 0)
    throw Error(ErrorCode::corrupt, "head and tail of the ring cannot be", name_);
}

std::vector<uint8_t> RingFile::contents() {
  const uint64_t size = state_.head - state_.tail;
  const uint64_t begin = state_.tail & (state_.ring_bytes - 1);
  const uint64_t first = std::min(size, state_.ring_bytes - begin);
  std::vector<uint8_t> out(size);
  const std::span<uint8_t> all(out);
  const size_t got = source_->read(kRingHeaderBytes + begin, all.first(first)) +
                     source_->read(kRingHeaderBytes, all.subspan(first));
  if (got != size) throw Error(ErrorCode::truncated, "file ends inside its ring", name_);
  return out;
}

DrainResult drain_rings(std::span<const std::filesystem::path> paths, StepIndex next_step,
                        RecordTarget& target) {
  DrainResult result;
  std::vector<std::unique_ptr<DeadRing>> rings;
  for (const std::filesystem::path& path : paths) {
    RingFile file(open_file(path));
    auto ring = std::make_unique<DeadRing>();
    ring->state = file.state();
    ring->bytes = file.contents();
    ring->left = ring->bytes;
    ring->has_steps = holds_steps(ring->left);
    result.steps_seen += ring->state.steps_seen;
    rings.push_back(std::move(ring));
  }
  result.rings = rings.size();
  if (rings.empty()) return result;
  // As the recorder's own thread does it: what other lanes said first, then the steps, then the
  // outputs that waited for them.
  std::stable_sort(rings.begin(), rings.end(),
                   [](const auto& a, const auto& b) { return a->has_steps < b->has_steps; });
  OnlyNew only_new(next_step, target);
  Assembler assembler(only_new, rings.front()->state.started_ns);
  if (rings.back()->state.keeps_last) assembler.set_jump_cause(kGapOverwritten);
  if (next_step != 0) assembler.expect(next_step);
  for (int round = 0; round < 2; ++round)
    for (auto& ring : rings) feed(*ring, next_step, assembler, result);
  assembler.finish();
  for (const auto& ring : rings) {
    const RingState& s = ring->state;
    if (s.pending_dropped == 0 || s.pending_last < s.pending_first) continue;
    target.take(Gap{.first = s.pending_first,
                    .last = s.pending_last,
                    .count = s.pending_last - s.pending_first + 1,
                    .bytes = s.pending_bytes,
                    .causes = kGapRingFull});
  }
  return result;
}

std::vector<std::filesystem::path> rings_of(const std::filesystem::path& trace) {
  constexpr uint64_t kCapBytes = uint64_t{1} << 20;
  std::vector<std::filesystem::path> out;
  const std::filesystem::path breadcrumb = breadcrumb_path(trace);
  if (!std::filesystem::exists(breadcrumb)) return out;
  std::istringstream lines(read_text_file(breadcrumb, kCapBytes));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || !std::filesystem::exists(line)) continue;
    const RingFile ring(open_file(line));
    const uint64_t pid = ring.state().pid;
    if (pid != static_cast<uint64_t>(::getpid()) && pid <= INT32_MAX &&
        (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM))
      throw Error(ErrorCode::environment,
                  "process " + std::to_string(pid) +
                      " is still recording: end it first, or wait for it to close the trace",
                  trace.string());
    out.emplace_back(line);
  }
  return out;
}

}  // namespace redecode
