#include "recorder/abi/lane.h"

#include <cstring>
#include <ctime>

#include "recorder/abi/columns.h"
#include "traces/event.h"
#include "traces/limits.h"

namespace redecode {
namespace {

uint64_t clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void add(std::atomic<uint64_t>& counter, uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

bool is_column(const rr_column& column) {
  return column.data != nullptr && (column.width == 4 || column.width == 8 || column.width == 0);
}

}  // namespace

void Lane::head(uint8_t* at, RecordKind kind, uint64_t size_bytes) {
  const RecordHead value{static_cast<uint32_t>(size_bytes), kind, sequence_++};
  std::memcpy(at, &value, sizeof value);
}

// Where a record of this size may be written; nullptr when there is no room, `result` says how.
uint8_t* Lane::room(uint64_t size_bytes, int& result) {
  if (size_bytes > ring_->size_bytes() / 4) {
    result = RR_ETOOBIG;
    return nullptr;
  }
  if (has_loss_ && !say_loss()) {
    result = RR_DROPPED;
    return shared_.policy == Policy::block ? wait_for_room(size_bytes, result) : nullptr;
  }
  if (uint8_t* at = ring_->reserve(size_bytes)) return at;
  result = RR_DROPPED;
  return shared_.policy == Policy::block ? wait_for_room(size_bytes, result) : nullptr;
}

uint8_t* Lane::wait_for_room(uint64_t size_bytes, int& result) {
  constexpr uint64_t kSleepNs = 50'000;
  const uint64_t begin_ns = clock_ns();
  for (;;) {
    if (!has_loss_ || say_loss())
      if (uint8_t* at = ring_->reserve(size_bytes)) return at;
    if (shared_.failed.load(std::memory_order_relaxed)) break;
    if (shared_.block_timeout_us != 0 &&
        clock_ns() - begin_ns >= uint64_t{shared_.block_timeout_us} * 1000)
      break;
    const timespec sleep{0, kSleepNs};
    ::nanosleep(&sleep, nullptr);
  }
  result = RR_TIMEOUT;
  return nullptr;
}

bool Lane::say_loss() {
  uint8_t* at = ring_->reserve(sizeof(LossRecord));
  if (at == nullptr) return false;
  std::memcpy(at, &loss_, sizeof loss_);
  head(at, RecordKind::loss, sizeof(LossRecord));
  ring_->commit(sizeof(LossRecord));
  RingHeader& h = ring_->header();
  h.pending_dropped.store(0, std::memory_order_relaxed);
  h.pending_bytes.store(0, std::memory_order_relaxed);
  h.pending_first.store(UINT64_MAX, std::memory_order_relaxed);
  has_loss_ = false;
  return true;
}

void Lane::lose(uint64_t bytes, bool book) {
  if (!has_loss_) {
    loss_ = LossRecord{};
    loss_.first = UINT64_MAX;
    has_loss_ = true;
  }
  ++loss_.records;
  loss_.bytes += bytes;
  loss_.causes |= bytes > ring_->size_bytes() / 4                  ? kGapRecordTooLarge
                  : shared_.failed.load(std::memory_order_relaxed) ? kGapWriteFailed
                                                                   : kGapRingFull;
  book_lost_ |= book;
  RingHeader& h = ring_->header();
  add(h.records_dropped, 1);
  add(h.bytes_dropped, bytes);
  h.pending_bytes.store(loss_.bytes, std::memory_order_relaxed);
}

void Lane::lose_step(uint64_t index, uint64_t bytes) {
  lose(bytes, false);
  if (loss_.steps++ == 0) loss_.first = index;
  loss_.last = index;
  book_lost_ = false;
  RingHeader& h = ring_->header();
  add(h.steps_dropped, 1);
  if (h.first_dropped.load(std::memory_order_relaxed) == UINT64_MAX)
    h.first_dropped.store(index, std::memory_order_relaxed);
  h.pending_first.store(loss_.first, std::memory_order_relaxed);
  h.pending_last.store(index, std::memory_order_relaxed);
  h.pending_dropped.store(loss_.steps, std::memory_order_relaxed);
}

template <class Record>
int Lane::put(const Record& record, bool book) {
  static_assert(sizeof(Record) % 8 == 0);
  int result = RR_OK;
  uint8_t* at = room(sizeof record, result);
  if (at == nullptr) {
    lose(sizeof record, book);
    return shared_.failed.load(std::memory_order_relaxed) ? int{RR_FAILED} : result;
  }
  std::memcpy(at, &record, sizeof record);
  head(at, static_cast<RecordKind>(record.head.kind), sizeof record);
  ring_->commit(sizeof record);
  return RR_OK;
}

int Lane::depart(uint32_t request, int reason) {
  if (reason < RR_FINISHED || reason > RR_ABORTED || request == RR_NO_REQUEST) return RR_EINVAL;
  DepartureRecord record{};
  record.head.kind = RecordKind::departure;
  record.request = request;
  record.reason = static_cast<uint32_t>(reason);
  if (reason != RR_PREEMPTED) shared_.departed.set(request);
  return put(record, true);
}

int Lane::arrive(const rr_arrival& a) {
  if (a.request == RR_NO_REQUEST || a.cached_tokens > a.prompt_tokens) return RR_EINVAL;
  ArrivalRecord record{};
  record.head.kind = RecordKind::arrival;
  record.request = a.request;
  record.session = a.session;
  record.round = a.round;
  record.prompt_tokens = a.prompt_tokens;
  record.cached_tokens = a.cached_tokens;
  record.max_tokens = a.max_tokens;
  record.resumed = a.resumed != 0 ? 1 : 0;
  record.temperature = a.temperature;
  record.top_p = a.top_p;
  record.min_p = a.min_p;
  record.top_k = a.top_k;
  record.seed = a.seed;
  return put(record, true);
}

int Lane::page(uint32_t request, uint32_t index, uint32_t page, bool shared) {
  if (request == RR_NO_REQUEST || page == 0) return RR_EINVAL;
  PageRecord record{};
  record.head.kind = RecordKind::page;
  record.request = request;
  record.index = index;
  record.page = page;
  record.shared = shared ? 1 : 0;
  return put(record, true);
}

int Lane::event(int kind, uint32_t request, uint32_t a, uint32_t b, const char* text) {
  if (kind < RR_EVENT_REGISTERED || kind > RR_EVENT_NOTE) return RR_EINVAL;
  const uint64_t text_bytes = text == nullptr ? 0 : ::strnlen(text, limits::kNameBytes + 1);
  if (text_bytes > limits::kNameBytes) return RR_EINVAL;
  EventRecord record{};
  record.time_ns = clock_ns();
  const uint64_t newest = shared_.newest_step.load(std::memory_order_relaxed);
  record.before_step = newest + 1;  // none yet: 0
  record.kind = static_cast<uint32_t>(kind);
  record.request = request;
  record.a = a;
  record.b = b;
  record.text_bytes = static_cast<uint32_t>(text_bytes);
  const uint64_t size_bytes = padded(sizeof record + text_bytes);
  int result = RR_OK;
  uint8_t* at = room(size_bytes, result);
  if (at == nullptr) {
    lose(size_bytes, false);
    return shared_.failed.load(std::memory_order_relaxed) ? int{RR_FAILED} : result;
  }
  std::memcpy(at, &record, sizeof record);
  if (text_bytes != 0) std::memcpy(at + sizeof record, text, text_bytes);
  head(at, RecordKind::event, size_bytes);
  ring_->commit(size_bytes);
  return RR_OK;
}

// Steps come from one lane: the first that records one.
int Lane::claim_steps() {
  const void* owner = shared_.step_lane.load(std::memory_order_relaxed);
  if (owner == this) return RR_OK;
  const void* none = nullptr;
  return shared_.step_lane.compare_exchange_strong(none, this) ? RR_OK : int{RR_ESTATE};
}

void Lane::watch_step(uint64_t time_ns) {
  if (shared_.trigger_step_ns == 0 || time_ns == RR_NO_TIME) return;
  if (last_time_ns_ != 0 && time_ns > last_time_ns_ + shared_.trigger_step_ns)
    shared_.triggered.store(true, std::memory_order_relaxed);
  last_time_ns_ = time_ns;
}

// Reserves the record of a step and writes all of it but the columns.
int Lane::open_step(const rr_step_info& info, bool has_wants) {
  if (info.rows > limits::kRows || info.phase < RR_PHASE_PREFILL || info.phase > RR_PHASE_MIXED)
    return RR_EINVAL;
  if (const int claimed = claim_steps(); claimed != RR_OK) return claimed;
  const uint64_t index = info.index == RR_NEXT_STEP ? next_step_ : info.index;
  if (index < next_step_) return RR_EINVAL;
  next_step_ = index + 1;
  shared_.newest_step.store(index, std::memory_order_relaxed);
  add(ring_->header().steps_seen, 1);
  const uint64_t time_ns = info.time_ns == RR_TAKE_CLOCK ? clock_ns() : info.time_ns;
  watch_step(time_ns);
  const uint64_t size_bytes = step_record_bytes(info.rows, has_wants);
  int result = RR_OK;
  uint8_t* at = book_lost_ ? nullptr : room(size_bytes, result);
  open_ = Open{at, size_bytes, info.rows, 0, index, at == nullptr, true};
  if (at == nullptr) {
    lose_step(index, size_bytes);
    return shared_.failed.load(std::memory_order_relaxed) ? RR_FAILED
           : result == RR_OK                              ? int{RR_DROPPED}
                                                          : result;
  }
  StepRecord record{};
  record.index = index;
  record.time_ns = time_ns;
  record.rows = info.rows;
  record.bucket = info.bucket;
  record.phase = static_cast<uint32_t>(info.phase);
  record.has_wants = has_wants ? 1 : 0;
  std::memcpy(at, &record, sizeof record);
  return RR_OK;
}

int Lane::step(const rr_step_info& info) {
  if (open_.active) return RR_ESTATE;
  if (info.rows != 0 && !(is_column(info.request) && is_column(info.position) &&
                          is_column(info.token) && is_column(info.slot)))
    return RR_EINVAL;
  const int opened = open_step(info, info.wants_output != nullptr);
  if (opened != RR_OK) {
    open_.active = false;
    return opened;
  }
  uint8_t* at = open_.record + sizeof(StepRecord);
  const uint64_t column_bytes = uint64_t{info.rows} * 4;
  copy_column(at, info.request, info.rows);
  copy_column(at + column_bytes, info.position, info.rows);
  copy_column(at + 2 * column_bytes, info.token, info.rows);
  copy_column(at + 3 * column_bytes, info.slot, info.rows);
  if (info.wants_output != nullptr)
    std::memcpy(at + 4 * column_bytes, info.wants_output, info.rows);
  open_.filled = info.rows;
  return step_end();
}

int Lane::step_begin(const rr_step_info& info) {
  if (open_.active) return RR_ESTATE;
  const int opened = open_step(info, true);
  if (opened < 0) open_.active = false;
  return opened;
}

int Lane::step_rows(uint32_t count, const rr_column& request, const rr_column& position,
                    const rr_column& token, const rr_column& slot, const uint8_t* wants_output) {
  if (!open_.active) return RR_ESTATE;
  if (count > open_.rows - open_.filled) return RR_EINVAL;
  if (count != 0 &&
      !(is_column(request) && is_column(position) && is_column(token) && is_column(slot)))
    return RR_EINVAL;
  if (!open_.dropped) {
    const uint64_t column_bytes = uint64_t{open_.rows} * 4;
    uint8_t* at = open_.record + sizeof(StepRecord) + uint64_t{open_.filled} * 4;
    copy_column(at, request, count);
    copy_column(at + column_bytes, position, count);
    copy_column(at + 2 * column_bytes, token, count);
    copy_column(at + 3 * column_bytes, slot, count);
    uint8_t* wants = open_.record + sizeof(StepRecord) + 4 * column_bytes + open_.filled;
    if (wants_output != nullptr)
      std::memcpy(wants, wants_output, count);
    else
      std::memset(wants, 1, count);
  }
  open_.filled += count;
  return open_.dropped ? int{RR_DROPPED} : int{RR_OK};
}

int Lane::step_end() {
  if (!open_.active) return RR_ESTATE;
  if (open_.filled != open_.rows && !open_.dropped) return RR_ESTATE;
  open_.active = false;
  if (open_.dropped) return RR_DROPPED;
  head(open_.record, RecordKind::step, open_.size_bytes);
  ring_->commit(open_.size_bytes);
  ring_->prepare(open_.size_bytes);
  return RR_OK;
}

void Lane::watch_outputs(const rr_output_info& info) {
  bool hit = false;
  if (shared_.trigger_token >= 0)
    for (uint32_t i = 0; i < info.rows && !hit; ++i)
      hit = static_cast<int32_t>(column_value(info.token, i)) == shared_.trigger_token;
  if (shared_.trigger_nonfinite && info.log_sum_exp != nullptr)
    for (uint32_t i = 0; i < info.rows && !hit; ++i)
      hit = !(info.log_sum_exp[i] - info.log_sum_exp[i] == 0.0f);
  if (hit) shared_.triggered.store(true, std::memory_order_relaxed);
}

int Lane::outputs(const rr_output_info& info) {
  if (open_.active) return RR_ESTATE;
  if (info.rows > limits::kRows || (info.rows != 0 && !is_column(info.token))) return RR_EINVAL;
  if (info.top_count > limits::kTopLogits || info.vocab > limits::kVocab) return RR_EINVAL;
  OutputsRecord record{};
  record.step = info.step == RR_LAST_STEP ? next_step_ - 1 : info.step;
  if (info.step == RR_LAST_STEP && next_step_ == 0) return RR_ESTATE;
  record.rows = info.rows;
  const bool has_top =
      info.top_tokens != nullptr && info.top_logits != nullptr && info.top_count != 0;
  record.top_count = has_top ? info.top_count : 0;
  record.vocab = info.logits != nullptr ? info.vocab : 0;
  record.parts = (info.digest.data != nullptr ? kPartDigest : 0u) |
                 (info.request.data != nullptr ? kPartRequests : 0u) |
                 (info.position.data != nullptr ? kPartPositions : 0u) |
                 (info.log_sum_exp != nullptr ? kPartLogSumExp : 0u) | (has_top ? kPartTop : 0u) |
                 (record.vocab != 0 ? kPartLogits : 0u);
  watch_outputs(info);
  const uint64_t size_bytes =
      outputs_record_bytes(info.rows, record.parts, record.top_count, record.vocab);
  int result = RR_OK;
  uint8_t* at = room(size_bytes, result);
  if (at == nullptr) {
    lose(size_bytes, false);
    return shared_.failed.load(std::memory_order_relaxed) ? int{RR_FAILED} : result;
  }
  std::memcpy(at, &record, sizeof record);
  copy_outputs(at + sizeof record, info, record);
  head(at, RecordKind::outputs, size_bytes);
  ring_->commit(size_bytes);
  return RR_OK;
}

void Lane::finish() {
  if (has_loss_) say_loss();
}

}  // namespace redecode
