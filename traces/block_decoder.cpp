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

// Takes the columns of a block one step after the other.
class BlockDecoder::Rows {
 public:
  Rows(schema::StepBlock::Reader in, uint64_t rows)
      : page_steps_(in.getPageSteps()),
        page_requests_(in.getPageRequests()),
        page_indexes_(in.getPageIndexes()),
        pages_(in.getPagePages()),
        shared_(in.getPageShared()),
        request_steps_(in.getRequestSteps()),
        requests_(in.getRequests()),
        exceptions_(in.getExceptionRows()),
        positions_(in.getExceptionPositions()),
        slots_(in.getExceptionSlots()),
        wants_(in.getWantsOutput()) {
    static constexpr const char* kWhat = "columns of a block differ in length";
    has_indexes_ = is_given(page_indexes_, page_steps_.size(), kWhat);
    has_shared_ = is_given(shared_, page_steps_.size(), kWhat);
    has_wants_ = is_given(wants_, rows, kWhat);
    if (page_requests_.size() != page_steps_.size() || pages_.size() != page_steps_.size() ||
        positions_.size() != exceptions_.size() || slots_.size() != exceptions_.size())
      corrupt(kWhat);
    next_exception_ = exceptions_.size() != 0 ? exceptions_[0] : UINT64_MAX;
  }

  void take_pages(uint32_t ordinal, ScheduleState& state, Step& step) {
    books_.page_changes.resize(1);
    for (; page_at_ < page_steps_.size() && page_step_ + page_steps_[page_at_] == ordinal;
         ++page_at_) {
      page_step_ = ordinal;
      page_request_ += page_requests_[page_at_];
      page_ += pages_[page_at_];
      const size_t entries = state.running(page_request_).request.pages.size();
      const uint32_t index =
          (has_indexes_ ? page_indexes_[page_at_] : 0) + static_cast<uint32_t>(entries);
      limits::check(step.page_changes.size() + 1, limits::kPageChanges, "page changes of a step");
      books_.page_changes[0] = {page_request_, index, page_, has_shared_ && shared_[page_at_]};
      step.page_changes.push_back(books_.page_changes[0]);
      state.apply_books(books_);
    }
  }

  // Where the block states the requests of a step, they become the expected ones.
  void take_requests(uint32_t ordinal, RowCodec& codec, const Step& step) {
    if (request_at_ == request_steps_.size() || request_steps_[request_at_] != ordinal) return;
    ++request_at_;
    if (requests_.size() - id_at_ < step.rows.size()) corrupt("requests of a block are too few");
    ids_.clear();
    states_.clear();
    RequestId id = 0;
    for (size_t i = 0; i < step.rows.size(); ++i) {
      ids_.push_back(id += requests_[id_at_++]);
      states_.push_back(&codec.state().running(id));
    }
    codec.expected().set(step.phase, ids_, states_);
  }

  void take_row(ScheduleState& state, ScheduleState::Running& running, Row& row) {
    row.position = running.request.next_position;
    uint32_t slot_difference = 0;
    if (row_at_ == next_exception_) {
      row.position += positions_[exception_at_];
      slot_difference = slots_[exception_at_];
      ++exception_at_;
      next_exception_ =
          exception_at_ < exceptions_.size() ? row_at_ + exceptions_[exception_at_] : UINT64_MAX;
      if (next_exception_ == row_at_) corrupt("exceptions of a block do not ascend");
    }
    row.slot = state.expected_slot(running, row.position) + slot_difference;
    row.wants_output = !has_wants_ || wants_[static_cast<unsigned>(row_at_)];
    state.advance(running, row.position, row.slot);
    ++row_at_;
  }

  void finish() const {
    if (page_at_ != page_steps_.size() || request_at_ != request_steps_.size() ||
        id_at_ != requests_.size() || exception_at_ != exceptions_.size())
      corrupt("a block has items of no step");
  }

 private:
  capnp::List<uint32_t>::Reader page_steps_, page_requests_, page_indexes_, pages_;
  capnp::List<bool>::Reader shared_;
  capnp::List<uint32_t>::Reader request_steps_, requests_, exceptions_, positions_, slots_;
  capnp::List<bool>::Reader wants_;
  bool has_indexes_ = false, has_shared_ = false, has_wants_ = false;
  unsigned page_at_ = 0, request_at_ = 0, id_at_ = 0, exception_at_ = 0;
  uint32_t page_step_ = 0, page_request_ = 0, page_ = 0;
  uint64_t next_exception_ = UINT64_MAX, row_at_ = 0;
  std::vector<RequestId> ids_;
  std::vector<ScheduleState::Running*> states_;
  Step books_;
};

void BlockDecoder::read_rows(schema::StepBlock::Reader in) {
  ScheduleState& state = rows_.state();
  Rows columns(in, lane_of_row_.size());
  uint64_t row_at = 0;
  for (uint32_t ordinal = 0; ordinal < steps_.size(); ++ordinal) {
    Step& step = steps_[ordinal];
    rows_.expected().depart(step);
    state.apply_books(step);
    columns.take_pages(ordinal, state, step);
    columns.take_requests(ordinal, rows_, step);
    const std::vector<RequestId>& expected = rows_.expected().of(step.phase);
    const auto& known = rows_.expected().states_of(step.phase);
    if (expected.size() != step.rows.size()) corrupt("a step of a block has other rows than said");
    for (size_t i = 0; i < step.rows.size(); ++i) {
      ScheduleState::Running& running = *known[i];
      step.rows[i].request = expected[i];
      columns.take_row(state, running, step.rows[i]);
      if (running.tag <= lane_base_) running.tag = lane_base_ + ++lane_count_;
      lane_of_row_[row_at++] = running.tag - lane_base_ - 1;
    }
    state.set_next_step(step.index + 1);
  }
  columns.finish();
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
