// traces/row_codec.h - RowCodec: the rows of a step as columns that leave out what follows from
// before.
//
// Lossless for any rows. What is expected, exactly: traces/schema/trace.capnp, struct Step. Both
// sides keep the same ScheduleState; it starts anew, from the keyframe, with every chunk. Cost:
// O(log requests) a row.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "traces/keyframe.h"
#include "traces/step.h"

namespace redecode {

// An empty column means "as expected".
struct RowColumns {
  uint32_t row_count = 0;
  std::vector<uint32_t> requests;
  std::vector<uint32_t> positions;  // minus expected
  std::vector<uint16_t> tokens;     // low halves, always there
  std::vector<uint16_t> tokens_high;
  std::vector<uint32_t> slots;  // minus expected
  std::vector<uint8_t> wants_output;
};

// Which requests the rows of a step are expected to be of: those of the last step of its phase in
// this chunk, without the ones that departed since.
class ExpectedRequests {
 public:
  using Running = ScheduleState::Running;
  void clear();
  void depart(const Step& step);
  const std::vector<RequestId>& of(Phase phase) const { return ids_[at(phase)]; }
  const std::vector<Running*>& states_of(Phase phase) const { return states_[at(phase)]; }
  // The rows of the step that was just read or written. Swaps the vectors in.
  void set(Phase phase, std::vector<RequestId>& ids, std::vector<Running*>& states);

 private:
  static size_t at(Phase phase) { return static_cast<size_t>(phase); }
  std::array<std::vector<RequestId>, 3> ids_;
  std::array<std::vector<Running*>, 3> states_;
};

class RowCodec {
 public:
  explicit RowCodec(uint32_t page_size) : state_(page_size) {}
  void reset();                          // at the start of a chunk without a keyframe
  void reset(const Keyframe& keyframe);  // at the start of a chunk
  RowColumns encode(const Step& step);
  // Fills step.rows; all else of `step` must be there. Errors: corrupt (columns of different
  // lengths).
  void decode(const RowColumns& columns, Step& step);
  // Steps are missing before the next one.
  void skip(StepIndex last) { state_.apply_gap(last); }

  ScheduleState& state() { return state_; }
  const ScheduleState& state() const { return state_; }
  ExpectedRequests& expected() { return expected_; }

 private:
  void begin(const Step& step);
  void finish(const Step& step);

  ScheduleState state_;
  ExpectedRequests expected_;
  std::vector<RequestId> ids_;  // of the step in hand
  std::vector<ScheduleState::Running*> states_;
};

}  // namespace redecode
