#include <algorithm>
#include <span>

#include "traces/limits.h"
#include "traces/step_block.h"
#include "traces/values_codec.h"

namespace redecode::codec {
namespace {

[[noreturn]] void corrupt(const char* what) { throw Error(ErrorCode::corrupt, what); }

// A column that may be left out.
template <class List>
bool is_given(const List& list, uint64_t expected, const char* what) {
  if (list.size() == 0) return false;
  if (list.size() != expected) corrupt(what);
  return true;
}

// Items that name their step by an ordinal, ascending.
template <class Steps, class Act>
void each_of_step(const Steps& ordinals, uint64_t steps, const Act& act) {
  uint32_t before = 0;
  for (unsigned i = 0; i < ordinals.size(); ++i) {
    const uint32_t at = ordinals[i];
    if (at >= steps || at < before) corrupt("items of a block do not follow its steps");
    before = at;
    act(i, at);
  }
}

void read_steps(schema::StepBlock::Reader in, std::vector<Step>& steps, uint64_t& rows) {
  limits::check(in.getCount(), limits::kBlockSteps, "steps of a block");
  const uint64_t count = in.getCount();
  static constexpr const char* kWhat = "columns of a block differ in length";
  const auto phases = in.getPhases();
  const auto buckets = in.getBuckets();
  const auto row_counts = in.getRowCounts();
  const auto times = in.getTimes();
  const auto left_out = in.getRowsLeftOut();
  const bool has_phases = is_given(phases, count, kWhat);
  const bool has_buckets = is_given(buckets, count, kWhat);
  const bool has_rows = is_given(row_counts, count, kWhat);
  const bool has_times = is_given(times, count, kWhat);
  const bool has_left_out = is_given(left_out, count, kWhat);
  uint32_t bucket = 0, row_count = 0;
  uint64_t time_us = 0;
  rows = 0;
  steps.assign(count, Step());
  for (unsigned i = 0; i < count; ++i) {
    Step& step = steps[i];
    step.index = in.getFirst() + i;
    const unsigned phase = has_phases ? phases[i] : static_cast<unsigned>(Phase::decode);
    if (phase > static_cast<unsigned>(Phase::mixed)) unknown_enumerant("phase", phase);
    step.phase = static_cast<Phase>(phase);
    step.bucket = bucket += has_buckets ? buckets[i] : 0;
    step.time_us = time_us += has_times ? times[i] : 0;
    step.rows_left_out = has_left_out ? left_out[i] : 0;
    row_count += has_rows ? row_counts[i] : 0;
    limits::check(row_count, limits::kRows, "rows of a step");
    rows += row_count;
    limits::check(rows, limits::kBlockRows, "rows of a block");
  }
  // Only now, when their sum is known to be small.
  row_count = 0;
  for (unsigned i = 0; i < count; ++i)
    steps[i].rows.resize(row_count += has_rows ? row_counts[i] : 0);
}

void read_books(schema::StepBlock::Reader in, std::vector<Step>& steps) {
  const auto departures = in.getDepartures();
  const auto arrivals = in.getArrivals();
  if (departures.size() != in.getDepartureSteps().size() ||
      arrivals.size() != in.getArrivalSteps().size())
    corrupt("columns of a block differ in length");
  each_of_step(in.getDepartureSteps(), steps.size(), [&](unsigned i, uint32_t at) {
    steps[at].departures.emplace_back();
    read(departures[i], steps[at].departures.back());
  });
  each_of_step(in.getArrivalSteps(), steps.size(), [&](unsigned i, uint32_t at) {
    steps[at].arrivals.emplace_back();
    read(arrivals[i], steps[at].arrivals.back());
  });
}

}  // namespace

void BlockDecoder::open(schema::StepBlock::Reader in) {
  given_ = 0;
  uint64_t rows = 0;
  read_steps(in, steps_, rows);
  const uint64_t token_bytes = in.getTokenBytes();
  if (token_bytes < 1 || token_bytes > 4 || in.getTokens().size() != rows * token_bytes)
    corrupt("tokens of a block do not match its rows");
  read_books(in, steps_);
  lane_of_row_.resize(rows);
  lane_base_ += lane_count_;
  lane_count_ = 0;
  read_rows(in);
  read_tokens(in);
}

void BlockDecoder::read_rows(schema::StepBlock::Reader in) {
  static constexpr const char* kWhat = "columns of a block differ in length";
  ScheduleState& state = rows_.state();
  const auto page_steps = in.getPageSteps();
  const auto page_requests = in.getPageRequests();
  const auto page_indexes = in.getPageIndexes();
  const auto pages = in.getPagePages();
  const auto shared = in.getPageShared();
  const auto request_steps = in.getRequestSteps();
  const auto requests = in.getRequests();
  const auto exceptions = in.getExceptionRows();
  const auto exception_positions = in.getExceptionPositions();
  const auto exception_slots = in.getExceptionSlots();
  const auto wants = in.getWantsOutput();
  const bool has_indexes = is_given(page_indexes, page_steps.size(), kWhat);
  const bool has_shared = is_given(shared, page_steps.size(), kWhat);
  const bool has_wants = is_given(wants, lane_of_row_.size(), kWhat);
  if (page_requests.size() != page_steps.size() || pages.size() != page_steps.size() ||
      exception_positions.size() != exceptions.size() ||
      exception_slots.size() != exceptions.size())
    corrupt(kWhat);
  unsigned page_at = 0, request_at = 0, id_at = 0, exception_at = 0;
  uint32_t page_step = 0, page_request = 0, page = 0;
  uint64_t next_exception = exceptions.size() != 0 ? exceptions[0] : UINT64_MAX;
  uint64_t row_at = 0;
  std::vector<RequestId> ids;
  std::vector<ScheduleState::Running*> states;
  Step books;
  for (uint32_t ordinal = 0; ordinal < steps_.size(); ++ordinal) {
    Step& step = steps_[ordinal];
    rows_.expected().depart(step);
    state.apply_books(step);
    books.page_changes.resize(1);
    for (; page_at < page_steps.size() && page_step + page_steps[page_at] == ordinal; ++page_at) {
      page_step = ordinal;
      page_request += page_requests[page_at];
      page += pages[page_at];
      const size_t entries = state.running(page_request).request.pages.size();
      const uint32_t index =
          (has_indexes ? page_indexes[page_at] : 0) + static_cast<uint32_t>(entries);
      books.page_changes[0] = {page_request, index, page, has_shared && shared[page_at]};
      limits::check(step.page_changes.size() + 1, limits::kPageChanges, "page changes of a step");
      step.page_changes.push_back(books.page_changes[0]);
      state.apply_books(books);
    }
    const bool stated = request_at < request_steps.size() && request_steps[request_at] == ordinal;
    ids.clear();
    states.clear();
    if (stated) {
      ++request_at;
      if (requests.size() - id_at < step.rows.size()) corrupt("requests of a block are too few");
      RequestId id = 0;
      for (size_t i = 0; i < step.rows.size(); ++i) {
        ids.push_back(id += requests[id_at++]);
        states.push_back(&state.running(id));
      }
      rows_.expected().set(step.phase, ids, states);
    }
    const std::vector<RequestId>& expected = rows_.expected().of(step.phase);
    const auto& known = rows_.expected().states_of(step.phase);
    if (expected.size() != step.rows.size()) corrupt("a step of a block has other rows than said");
    for (size_t i = 0; i < step.rows.size(); ++i, ++row_at) {
      ScheduleState::Running& running = *known[i];
      Row& row = step.rows[i];
      row.request = expected[i];
      row.position = running.request.next_position;
      uint32_t slot_difference = 0;
      if (row_at == next_exception) {
        row.position += exception_positions[exception_at];
        slot_difference = exception_slots[exception_at];
        ++exception_at;
        next_exception =
            exception_at < exceptions.size() ? row_at + exceptions[exception_at] : UINT64_MAX;
        if (next_exception == row_at) corrupt("exceptions of a block do not ascend");
      }
      row.slot = state.expected_slot(running, row.position) + slot_difference;
      row.wants_output = !has_wants || wants[static_cast<unsigned>(row_at)];
      state.advance(running, row.position, row.slot);
      if (running.tag <= lane_base_) running.tag = lane_base_ + ++lane_count_;
      lane_of_row_[row_at] = running.tag - lane_base_ - 1;
    }
    state.set_next_step(step.index + 1);
  }
  if (page_at != page_steps.size() || request_at != request_steps.size() ||
      id_at != requests.size() || exception_at != exceptions.size())
    corrupt("a block has items of no step");
}

void BlockDecoder::read_tokens(schema::StepBlock::Reader in) {
  const uint32_t token_bytes = in.getTokenBytes();
  const auto data = in.getTokens();
  std::vector<uint32_t> next(lane_count_ + 1, 0);  // where each lane's next token lies
  for (const uint32_t lane : lane_of_row_) ++next[lane + 1];
  for (uint32_t lane = 1; lane <= lane_count_; ++lane) next[lane] += next[lane - 1];
  uint64_t row_at = 0;
  for (Step& step : steps_)
    for (Row& row : step.rows) {
      const uint8_t* at = data.begin() + uint64_t{next[lane_of_row_[row_at++]]++} * token_bytes;
      uint32_t token = 0;
      for (uint32_t b = 0; b < token_bytes; ++b) token |= uint32_t{at[b]} << (8 * b);
      row.token = static_cast<int32_t>(token);
    }
}

bool BlockDecoder::next(Step& out) {
  if (given_ == steps_.size()) return false;
  out = std::move(steps_[given_++]);
  return true;
}

}  // namespace redecode::codec
