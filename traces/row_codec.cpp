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

void RowCodec::reset() {
  requests_.clear();
  for (auto& list : last_requests_) list.clear();
}

void RowCodec::begin(const Step& step) {
  for (const Departure& d : step.departures) {
    requests_.erase(d.request);
    for (auto& list : last_requests_) std::erase(list, d.request);
  }
  for (const Arrival& a : step.arrivals) requests_[a.request].next_position = a.cached_tokens;
  for (const PageChange& c : step.page_changes) set_page(requests_[c.request], c.index, c.page);
}

void RowCodec::finish(const Step& step) {
  auto& list = last_requests_[static_cast<size_t>(step.phase)];
  list.clear();
  for (const Row& row : step.rows) list.push_back(row.request);
}

void RowCodec::set_page(RequestState& state, uint32_t index, PageId page) {
  state.pages[index] = page;
  state.last_index = index;
  state.last_page = page;
}

uint32_t RowCodec::expected_slot(const RequestState& state, uint32_t position) const {
  if (page_size_ == 0) return 0;
  const uint32_t index = position / page_size_;
  if (index == state.last_index) return state.last_page * page_size_ + position % page_size_;
  const auto page = state.pages.find(index);
  return page == state.pages.end() ? 0 : page->second * page_size_ + position % page_size_;
}

void RowCodec::learn(RequestState& state, const Row& row) {
  state.next_position = row.position + 1;
  if (page_size_ == 0) return;
  const uint32_t index = row.position / page_size_;
  const PageId page = row.slot / page_size_;
  if (index != state.last_index || page != state.last_page) set_page(state, index, page);
}

RowColumns RowCodec::encode(const Step& step) {
  begin(step);
  RowColumns c;
  c.row_count = static_cast<uint32_t>(step.rows.size());
  for (const Row& row : step.rows) {
    RequestState& state = requests_[row.request];
    c.requests.push_back(row.request);
    c.positions.push_back(row.position - state.next_position);
    c.slots.push_back(row.slot - expected_slot(state, row.position));
    const uint32_t token = static_cast<uint32_t>(row.token);
    c.tokens.push_back(static_cast<uint16_t>(token));
    c.tokens_high.push_back(static_cast<uint16_t>(token >> 16));
    c.wants_output.push_back(row.wants_output ? 1 : 0);
    learn(state, row);
  }
  if (c.requests == last_requests_[static_cast<size_t>(step.phase)]) c.requests.clear();
  drop_if_all(c.positions, uint32_t{0});
  drop_if_all(c.slots, uint32_t{0});
  drop_if_all(c.tokens_high, uint16_t{0});
  drop_if_all(c.wants_output, uint8_t{1});
  finish(step);
  return c;
}

void RowCodec::decode(const RowColumns& c, Step& step) {
  begin(step);
  const std::vector<uint32_t>& expected = last_requests_[static_cast<size_t>(step.phase)];
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
    RequestState& state = requests_[requests[i]];
    Row row;
    row.request = requests[i];
    row.position = state.next_position + (c.positions.empty() ? 0 : c.positions[i]);
    row.slot = expected_slot(state, row.position) + (c.slots.empty() ? 0 : c.slots[i]);
    const uint32_t high = c.tokens_high.empty() ? 0 : c.tokens_high[i];
    row.token = static_cast<int32_t>(high << 16 | c.tokens[i]);
    row.wants_output = c.wants_output.empty() || c.wants_output[i] != 0;
    learn(state, row);
    step.rows.push_back(row);
  }
  finish(step);
}

}  // namespace redecode
