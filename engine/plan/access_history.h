// engine/plan/access_history.h - AccessHistory: who touched each byte, and whose content it holds.
//
// A range keeps the touches that a later command could still race with: a touch leaves once a later
// one on the same bytes is ordered after it and conflicts with at least as much (a write with
// everything, a read with reads), or once everything to come is ordered after it. So a range keeps
// at most one read and one write an actor, and a race is reported against the latest touches, not
// against all of them.
#pragma once
#include <vector>

#include "engine/plan/clock.h"
#include "engine/plan/range_map.h"
#include "traces/finding.h"

namespace redecode {

// A buffer as owned between one allocation and its free; persistent buffers have one for good.
using OwnerId = uint64_t;
inline constexpr OwnerId kPersistentOwnerBit = OwnerId{1} << 63;
constexpr bool is_persistent_owner(OwnerId owner) { return (owner & kPersistentOwnerBit) != 0; }

// One command touching one buffer. Names are ids of the checker's own string table.
struct Touch {
  Epoch epoch;
  OwnerId owner = 0;
  StepIndex step = 0;
  uint64_t generation = 0;    // of the block behind the buffer; 0: persistent
  uint64_t buffer_begin = 0;  // place of the buffer on the line
  uint32_t command = 0;
  uint32_t op = 0;
  uint32_t buffer = 0;
  RequestId request = kNoRequest;
  uint16_t layer = 0;
  StreamId stream = 0;
  Access access = Access::none;
  uint32_t operand = 0;  // of the command: operands first, then touched ranges
  uint32_t version = 0;  // meant to be seen, or made; 0: not stated
  bool operator==(const Touch&) const = default;
};

// Two touches of [begin, end) that no path orders; `first` is earlier in program order.
struct Conflict {
  Touch first, second;
  uint64_t begin = 0, end = 0;
};

// A read of [begin, end) whose content is not the reader's, or not of the version it is meant to
// see.
struct BadContent {
  bool has_writer = false;  // stale; otherwise unwritten
  Touch writer;
  Touch reader;
  uint64_t begin = 0, end = 0;
};

// Which of the unordered touches of a byte a later command is reported against.
enum class RacePairs : uint8_t {
  latest,  // those that no later touch follows and outdoes: bounded state
  all,     // every one: state grows with the touches, for small programs
};

class AccessHistory {
 public:
  explicit AccessHistory(RacePairs pairs = RacePairs::latest) : pairs_(pairs) {}

  // A new owner: its bytes are undefined until written. Touches of earlier owners stay.
  void allocate(uint64_t begin, uint64_t end);

  // Adds a touch whose clock is `clock`; whatever `settled` covers is dropped on the way. With
  // `judge_content` a read also has its content checked; `initially_written` says whether bytes
  // that nothing ever touched are defined. Bytes in a conflict are not judged. Appends to both
  // outputs.
  struct Judgement {
    bool judge_content = true;
    bool initially_written = false;
    uint32_t initial_version = 0;  // of bytes that nothing ever touched
  };
  void touch(const Touch& touch, const Clock& clock, const Clock& settled, uint64_t begin,
             uint64_t end, Judgement judgement, std::vector<Conflict>& conflicts,
             std::vector<BadContent>& bad_contents);

  size_t range_count() const { return ranges_.size(); }

 private:
  enum class Content : uint8_t { initial, undefined, written };
  struct State {
    Content content = Content::initial;
    Touch writer;  // of the content; all zero unless written
    std::vector<Touch> touches;
    bool operator==(const State&) const = default;
  };
  void settle(State& state, const Clock& settled) const;
  static void judge(const State& state, const Touch& touch, const Judgement& judgement,
                    uint64_t begin, uint64_t end, std::vector<BadContent>& out);

  RacePairs pairs_;

  RangeMap<State> ranges_;
};

}  // namespace redecode
