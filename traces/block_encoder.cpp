#include <algorithm>
#include <bit>
#include <cstring>

#include "traces/limits.h"
#include "traces/step_block.h"
#include "traces/values_codec.h"

namespace redecode::codec {
namespace {

template <class ListBuilder, class Values>
void set_all(ListBuilder list, const Values& values) {
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, values[i]);
}

template <class Values>
unsigned count(const Values& values) {
  return static_cast<unsigned>(values.size());
}

template <class Values>
bool all_zero(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](auto v) { return v == 0; });
}

uint32_t bytes_of(uint32_t bits) {
  return std::max(1u, (static_cast<uint32_t>(std::bit_width(bits)) + 7) / 8);
}

}  // namespace

bool BlockEncoder::fits(const Step& step) const {
  return steps_ < limits::kBlockSteps && row_count_ + step.rows.size() <= limits::kBlockRows;
}

void BlockEncoder::add(const Step& step) {
  limits::check(step.rows.size(), limits::kRows, "rows of a step");
  limits::check(step.departures.size(), limits::kRows, "departures");
  limits::check(step.arrivals.size(), limits::kRows, "arrivals");
  limits::check(step.page_changes.size(), limits::kPageChanges, "page changes of a step");
  if (empty()) first_ = step.index;
  const uint32_t rows = static_cast<uint32_t>(step.rows.size());
  phases_.push_back(static_cast<uint8_t>(step.phase));
  buckets_.push_back(step.bucket - last_bucket_);
  row_counts_.push_back(rows - last_rows_);
  times_.push_back(step.time_us - last_time_);
  rows_left_out_.push_back(step.rows_left_out);
  last_bucket_ = step.bucket;
  last_rows_ = rows;
  last_time_ = step.time_us;
  add_books(step);
  add_rows(step);
  ++steps_;
  row_count_ += rows;
  size_bytes_ += 25 + step.departures.size() * 12 + step.arrivals.size() * 64 +
                 step.page_changes.size() * 17 + rows * 5;
}

void BlockEncoder::add_books(const Step& step) {
  rows_.expected().depart(step);
  for (const Departure& d : step.departures) {
    departure_steps_.push_back(steps_);
    departures_.push_back(d);
  }
  for (const Arrival& a : step.arrivals) {
    arrival_steps_.push_back(steps_);
    arrivals_.push_back(a);
  }
  if (step.departures.empty() && step.arrivals.empty() && step.page_changes.empty()) return;
  Step books;
  books.departures = step.departures;
  books.arrivals = step.arrivals;
  rows_.state().apply_books(books);
  books.departures.clear();
  books.arrivals.clear();
  books.page_changes.resize(1);
  for (const PageChange& c : step.page_changes) {
    const size_t entries = rows_.state().running(c.request).request.pages.size();
    page_steps_.push_back(steps_ - last_page_step_);
    page_requests_.push_back(c.request - last_page_request_);
    page_indexes_.push_back(c.index - static_cast<uint32_t>(entries));
    page_pages_.push_back(c.page - last_page_);
    page_shared_.push_back(c.shared ? 1 : 0);
    last_page_step_ = steps_;
    last_page_request_ = c.request;
    last_page_ = c.page;
    books.page_changes[0] = c;
    rows_.state().apply_books(books);
  }
}

void BlockEncoder::add_rows(const Step& step) {
  ScheduleState& state = rows_.state();
  const std::vector<RequestId>& expected = rows_.expected().of(step.phase);
  const std::vector<ScheduleState::Running*>& known = rows_.expected().states_of(step.phase);
  bool as_expected = expected.size() == step.rows.size();
  for (size_t i = 0; as_expected && i < expected.size(); ++i)
    as_expected = expected[i] == step.rows[i].request;
  if (!as_expected) {
    ids_.clear();
    states_.clear();
    request_steps_.push_back(steps_);
    RequestId before = 0;
    for (const Row& row : step.rows) {
      ids_.push_back(row.request);
      states_.push_back(&state.running(row.request));
      requests_.push_back(row.request - before);
      before = row.request;
    }
    size_bytes_ += 4 + step.rows.size() * 4;
  }
  ScheduleState::Running* const* states = as_expected ? known.data() : states_.data();
  for (size_t i = 0; i < step.rows.size(); ++i) {
    const Row& row = step.rows[i];
    ScheduleState::Running& running = *states[i];
    const uint32_t position = row.position - running.request.next_position;
    const uint32_t slot = row.slot - state.expected_slot(running, row.position);
    if ((position | slot) != 0) {
      const uint64_t at = row_count_ + i;
      exception_rows_.push_back(static_cast<uint32_t>(at - last_exception_));
      exception_positions_.push_back(position);
      exception_slots_.push_back(slot);
      last_exception_ = at;
      size_bytes_ += 12;
    }
    state.advance(running, row.position, row.slot);
    if (running.tag <= lane_base_) {
      running.tag = lane_base_ + ++lane_count_;
      if (lanes_.size() < lane_count_) lanes_.emplace_back();
    }
    const uint32_t token = static_cast<uint32_t>(row.token);
    lanes_[running.tag - lane_base_ - 1].push_back(token);
    token_bits_ |= token;
    if (all_want_ && !row.wants_output) {
      all_want_ = false;
      wants_.assign(row_count_ + i, 1);  // of the rows before this one
    }
    if (!all_want_) wants_.push_back(row.wants_output ? 1 : 0);
  }
  state.set_next_step(step.index + 1);
  if (!as_expected) rows_.expected().set(step.phase, ids_, states_);
}

void BlockEncoder::write(schema::StepBlock::Builder out) const {
  out.setFirst(first_);
  out.setCount(steps_);
  if (!std::all_of(phases_.begin(), phases_.end(),
                   [](uint8_t p) { return p == static_cast<uint8_t>(Phase::decode); }))
    set_all(out.initPhases(count(phases_)), phases_);
  if (!all_zero(buckets_)) set_all(out.initBuckets(count(buckets_)), buckets_);
  if (!all_zero(row_counts_)) set_all(out.initRowCounts(count(row_counts_)), row_counts_);
  if (!all_zero(times_)) set_all(out.initTimes(count(times_)), times_);
  if (!all_zero(rows_left_out_))
    set_all(out.initRowsLeftOut(count(rows_left_out_)), rows_left_out_);
  if (!departures_.empty()) {
    set_all(out.initDepartureSteps(count(departure_steps_)), departure_steps_);
    auto list = out.initDepartures(count(departures_));
    for (unsigned i = 0; i < list.size(); ++i) codec::write(departures_[i], list[i]);
  }
  if (!arrivals_.empty()) {
    set_all(out.initArrivalSteps(count(arrival_steps_)), arrival_steps_);
    auto list = out.initArrivals(count(arrivals_));
    for (unsigned i = 0; i < list.size(); ++i) codec::write(arrivals_[i], list[i]);
  }
  if (!page_steps_.empty()) {
    set_all(out.initPageSteps(count(page_steps_)), page_steps_);
    set_all(out.initPageRequests(count(page_requests_)), page_requests_);
    if (!all_zero(page_indexes_)) set_all(out.initPageIndexes(count(page_indexes_)), page_indexes_);
    set_all(out.initPagePages(count(page_pages_)), page_pages_);
    if (!all_zero(page_shared_)) {
      auto list = out.initPageShared(count(page_shared_));
      for (unsigned i = 0; i < list.size(); ++i) list.set(i, page_shared_[i] != 0);
    }
  }
  set_all(out.initRequestSteps(count(request_steps_)), request_steps_);
  set_all(out.initRequests(count(requests_)), requests_);
  if (!exception_rows_.empty()) {
    set_all(out.initExceptionRows(count(exception_rows_)), exception_rows_);
    set_all(out.initExceptionPositions(count(exception_positions_)), exception_positions_);
    set_all(out.initExceptionSlots(count(exception_slots_)), exception_slots_);
  }
  if (!all_want_) {
    auto list = out.initWantsOutput(count(wants_));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, wants_[i] != 0);
  }
  const uint32_t token_bytes = bytes_of(token_bits_);
  out.setTokenBytes(static_cast<uint8_t>(token_bytes));
  auto data = out.initTokens(static_cast<unsigned>(row_count_ * token_bytes));
  uint8_t* at = data.begin();
  for (uint32_t lane = 0; lane < lane_count_; ++lane)
    for (const uint32_t token : lanes_[lane])
      for (uint32_t b = 0; b < token_bytes; ++b) *at++ = static_cast<uint8_t>(token >> (8 * b));
}

void BlockEncoder::clear() {
  steps_ = 0;
  row_count_ = size_bytes_ = 0;
  last_bucket_ = last_rows_ = 0;
  last_time_ = 0;
  last_page_step_ = last_page_request_ = last_page_ = 0;
  last_exception_ = 0;
  phases_.clear();
  times_.clear();
  for (auto* column : {&buckets_, &row_counts_, &rows_left_out_, &departure_steps_, &arrival_steps_,
                       &request_steps_, &requests_, &page_steps_, &page_requests_, &page_indexes_,
                       &page_pages_, &exception_rows_, &exception_positions_, &exception_slots_})
    column->clear();
  departures_.clear();
  arrivals_.clear();
  page_shared_.clear();
  wants_.clear();
  all_want_ = true;
  for (uint32_t lane = 0; lane < lane_count_; ++lane) lanes_[lane].clear();
  lane_base_ += lane_count_;
  lane_count_ = 0;
  token_bits_ = 0;
}

}  // namespace redecode::codec
