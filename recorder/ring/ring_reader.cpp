#include "recorder/ring/ring_reader.h"

#include <cstring>

#include "traces/limits.h"

namespace redecode {
namespace {

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The fixed part of a record of this kind; false where it is too short for one.
template <class Record>
bool fixed(const RawRecord& record, RecordKind kind, Record& out) {
  if (record.head.kind != kind || record.bytes.size() < sizeof(Record)) return false;
  std::memcpy(&out, record.bytes.data(), sizeof out);
  return true;
}

// Reads columns one behind the other.
class Columns {
 public:
  explicit Columns(const uint8_t* at) : at_(at) {}
  const uint8_t* take(uint64_t bytes) {
    const uint8_t* here = at_;
    at_ += bytes;
    return here;
  }

 private:
  const uint8_t* at_;
};

bool sound(const OutputsRecord& r, uint64_t size_bytes) {
  if (r.rows > limits::kRows || r.top_count > limits::kTopLogits || r.vocab > limits::kVocab ||
      r.parts > (kPartLogits << 1) - 1)
    return false;
  return outputs_record_bytes(r.rows, r.parts, r.top_count, r.vocab) == size_bytes;
}

void read_tops(Columns& columns, const OutputsRecord& r, StepOutput& out) {
  const uint64_t bytes = uint64_t{r.rows} * r.top_count * 4;
  const uint8_t* tokens = columns.take(bytes);
  const uint8_t* logits = columns.take(bytes);
  for (uint32_t i = 0; i < r.rows; ++i) {
    auto& top = out.rows[i].top;
    top.resize(r.top_count);
    for (uint32_t k = 0; k < r.top_count; ++k) {
      const uint64_t at = (uint64_t{i} * r.top_count + k) * 4;
      top[k] = {load<int32_t>(tokens + at), load<float>(logits + at)};
    }
  }
}

}  // namespace

bool take_record(std::span<const uint8_t>& bytes, RawRecord& out) {
  if (bytes.size() < sizeof(RecordHead)) return false;
  std::memcpy(&out.head, bytes.data(), sizeof out.head);
  const uint32_t size = out.head.size_bytes;
  if (size < sizeof(RecordHead) || size % 8 != 0 || size > bytes.size()) return false;
  out.bytes = bytes.first(size);
  bytes = bytes.subspan(size);
  return true;
}

uint64_t since_start_us(uint64_t time_ns, uint64_t started_ns) {
  if (time_ns == UINT64_MAX || time_ns < started_ns) return 0;
  return (time_ns - started_ns) / 1000;
}

bool read_step(const RawRecord& record, uint64_t started_ns, Step& out) {
  StepRecord r;
  if (!fixed(record, RecordKind::step, r)) return false;
  if (r.rows > limits::kRows || r.phase > static_cast<uint32_t>(Phase::mixed) || r.has_wants > 1 ||
      step_record_bytes(r.rows, r.has_wants != 0) != record.bytes.size())
    return false;
  out.index = r.index;
  out.phase = static_cast<Phase>(r.phase);
  out.bucket = r.bucket;
  out.time_us = since_start_us(r.time_ns, started_ns);
  out.rows_left_out = 0;
  out.rows.resize(r.rows);
  Columns columns(record.bytes.data() + sizeof r);
  const uint64_t column_bytes = uint64_t{r.rows} * 4;
  const uint8_t* requests = columns.take(column_bytes);
  const uint8_t* positions = columns.take(column_bytes);
  const uint8_t* tokens = columns.take(column_bytes);
  const uint8_t* slots = columns.take(column_bytes);
  const uint8_t* wants = r.has_wants != 0 ? columns.take(r.rows) : nullptr;
  for (uint32_t i = 0; i < r.rows; ++i) {
    Row& row = out.rows[i];
    const uint64_t at = uint64_t{i} * 4;
    row.request = load<uint32_t>(requests + at);
    row.position = load<uint32_t>(positions + at);
    row.token = load<int32_t>(tokens + at);
    row.slot = load<uint32_t>(slots + at);
    row.wants_output = wants == nullptr || wants[i] != 0;
  }
  return true;
}

bool read_arrival(const RawRecord& record, Arrival& out) {
  ArrivalRecord r;
  if (!fixed(record, RecordKind::arrival, r)) return false;
  out = {.request = r.request,
         .session = r.session,
         .round = r.round,
         .prompt_tokens = r.prompt_tokens,
         .cached_tokens = r.cached_tokens,
         .max_tokens = r.max_tokens,
         .resumed = r.resumed != 0,
         .sampling = {.temperature = r.temperature,
                      .top_k = r.top_k,
                      .top_p = r.top_p,
                      .min_p = r.min_p,
                      .seed = r.seed}};
  return r.request != kNoRequest && r.cached_tokens <= r.prompt_tokens;
}

bool read_departure(const RawRecord& record, Departure& out) {
  DepartureRecord r;
  if (!fixed(record, RecordKind::departure, r)) return false;
  if (r.reason > static_cast<uint32_t>(DepartureReason::failed)) return false;
  out = {r.request, static_cast<DepartureReason>(r.reason)};
  return true;
}

bool read_page(const RawRecord& record, PageChange& out) {
  PageRecord r;
  if (!fixed(record, RecordKind::page, r)) return false;
  out = {r.request, r.index, r.page, r.shared != 0};
  return r.page != 0;
}

bool read_event(const RawRecord& record, uint64_t started_ns, Event& out) {
  EventRecord r;
  if (!fixed(record, RecordKind::event, r)) return false;
  if (r.kind > static_cast<uint32_t>(EventKind::note) || r.text_bytes > limits::kNameBytes ||
      padded(sizeof r + r.text_bytes) != record.bytes.size())
    return false;
  out.before_step = r.before_step;
  out.time_us = since_start_us(r.time_ns, started_ns);
  out.kind = static_cast<EventKind>(r.kind);
  out.request = r.request;
  out.a = r.a;
  out.b = r.b;
  out.text.assign(reinterpret_cast<const char*>(record.bytes.data() + sizeof r), r.text_bytes);
  return true;
}

bool read_outputs(const RawRecord& record, const Step* step, StepOutput& out) {
  OutputsRecord r;
  if (!fixed(record, RecordKind::outputs, r) || !sound(r, record.bytes.size())) return false;
  out = StepOutput();
  out.step = r.step;
  out.rows.resize(r.rows);
  Columns columns(record.bytes.data() + sizeof r);
  const auto part = [&](uint32_t bit, uint64_t row_bytes) -> const uint8_t* {
    return (r.parts & bit) != 0 ? columns.take(r.rows * row_bytes) : nullptr;
  };
  const uint8_t* digests = part(kPartDigest, 8);
  const uint8_t* rows = columns.take(uint64_t{r.rows} * 4);
  const uint8_t* tokens = columns.take(uint64_t{r.rows} * 4);
  const uint8_t* requests = part(kPartRequests, 4);
  const uint8_t* positions = part(kPartPositions, 4);
  const uint8_t* sums = part(kPartLogSumExp, 4);
  for (uint32_t i = 0; i < r.rows; ++i) {
    RowOutput& row = out.rows[i];
    const uint64_t at = uint64_t{i} * 4;
    row.row = load<uint32_t>(rows + at);
    if (step != nullptr && row.row < step->rows.size()) {
      row.request = step->rows[row.row].request;
      row.position = step->rows[row.row].position;
    }
    row.token = load<int32_t>(tokens + at);
    if (digests != nullptr) row.logits_digest = load<uint64_t>(digests + uint64_t{i} * 8);
    if (requests != nullptr) row.request = load<uint32_t>(requests + at);
    if (positions != nullptr) row.position = load<uint32_t>(positions + at);
    if (sums != nullptr) row.log_sum_exp = load<float>(sums + at);
  }
  if ((r.parts & kPartTop) != 0) read_tops(columns, r, out);
  if ((r.parts & kPartLogits) != 0) {
    for (RowOutput& row : out.rows) {
      row.logits.resize(r.vocab);
      const uint64_t bytes = uint64_t{r.vocab} * 4;
      if (bytes != 0) std::memcpy(row.logits.data(), columns.take(bytes), bytes);
    }
  }
  return true;
}

bool read_loss(const RawRecord& record, LossRecord& out) {
  if (!fixed(record, RecordKind::loss, out)) return false;
  return out.steps == 0 || (out.first <= out.last && out.last - out.first >= out.steps - 1);
}

}  // namespace redecode
