#include "traces/row_codec.h"

#include <algorithm>

#include "traces/error.h"

namespace redecode {
namespace {

template <class T>
bool all_equal(const std::vector<T>& values, T expected) {
  return std::all_of(values.begin(), values.end(), [&](T v) { return v == expected; });
}

template <class T>
void drop_if_all(std::vector<T>& column, T expected) {
  if (all_equal(column, expected)) column.clear();
}

template <class T>
void check_length(const std::vector<T>& column, uint32_t row_count) {
  if (!column.empty() && column.size() != row_count)
    throw Error(ErrorCode::corrupt, "columns of a step's rows differ in length");
}

}  // namespace

void ExpectedRequests::clear() {
  for (auto& list : ids_) list.clear();
  for (auto& list : states_) list.clear();
}

void ExpectedRequests::depart(const Step& step) {
  for (const Departure& d : step.departures)
    for (size_t phase = 0; phase < ids_.size(); ++phase)
      for (size_t i = ids_[phase].size(); i-- > 0;) {
        if (ids_[phase][i] != d.request) continue;
        ids_[phase].erase(ids_[phase].begin() + static_cast<ptrdiff_t>(i));
        states_[phase].erase(states_[phase].begin() + static_cast<ptrdiff_t>(i));
      }
}

void ExpectedRequests::set(Phase phase, std::vector<RequestId>& ids,
                           std::vector<Running*>& states) {
  ids_[at(phase)].swap(ids);
  states_[at(phase)].swap(states);
}

void RowCodec::reset() {
  state_.clear();
  expected_.clear();
}

void RowCodec::reset(const Keyframe& keyframe) {
  state_.restore(keyframe);
  expected_.clear();
}

void RowCodec::begin(const Step& step) {
  expected_.depart(step);
  state_.apply_books(step);
  ids_.clear();
  states_.clear();
}

void RowCodec::finish(const Step& step) {
  expected_.set(step.phase, ids_, states_);
  state_.set_next_step(step.index + 1);
}

RowColumns RowCodec::encode(const Step& step) {
  begin(step);
  RowColumns c;
  c.row_count = static_cast<uint32_t>(step.rows.size());
  for (const Row& row : step.rows) {
    ScheduleState::Running& state = state_.running(row.request);
    ids_.push_back(row.request);
    states_.push_back(&state);
    c.positions.push_back(row.position - state.request.next_position);
    c.slots.push_back(row.slot - state_.expected_slot(state, row.position));
    const uint32_t token = static_cast<uint32_t>(row.token);
    c.tokens.push_back(static_cast<uint16_t>(token));
    c.tokens_high.push_back(static_cast<uint16_t>(token >> 16));
    c.wants_output.push_back(row.wants_output ? 1 : 0);
    state_.advance(state, row.position, row.slot);
  }
  if (ids_ != expected_.of(step.phase)) c.requests = ids_;
  drop_if_all(c.positions, uint32_t{0});
  drop_if_all(c.slots, uint32_t{0});
  drop_if_all(c.tokens_high, uint16_t{0});
  drop_if_all(c.wants_output, uint8_t{1});
  finish(step);
  return c;
}

void RowCodec::decode(const RowColumns& c, Step& step) {
  begin(step);
  const std::vector<uint32_t>& expected = expected_.of(step.phase);
  const std::vector<uint32_t>& requests =
      c.requests.empty() && c.row_count != 0 ? expected : c.requests;
  if (requests.size() != c.row_count || c.tokens.size() != c.row_count)
    throw Error(ErrorCode::corrupt, "columns of a step's rows differ in length");
  check_length(c.positions, c.row_count);
  check_length(c.tokens_high, c.row_count);
  check_length(c.slots, c.row_count);
  check_length(c.wants_output, c.row_count);

  step.rows.clear();
  step.rows.reserve(c.row_count);
  for (uint32_t i = 0; i < c.row_count; ++i) {
    ScheduleState::Running& state = state_.running(requests[i]);
    ids_.push_back(requests[i]);
    states_.push_back(&state);
    Row row;
    row.request = requests[i];
    row.position = state.request.next_position + (c.positions.empty() ? 0 : c.positions[i]);
    row.slot = state_.expected_slot(state, row.position) + (c.slots.empty() ? 0 : c.slots[i]);
    const uint32_t high = c.tokens_high.empty() ? 0 : c.tokens_high[i];
    row.token = static_cast<int32_t>(high << 16 | c.tokens[i]);
    row.wants_output = c.wants_output.empty() || c.wants_output[i] != 0;
    state_.advance(state, row.position, row.slot);
    step.rows.push_back(row);
  }
  finish(step);
}

}  // namespace redecode
