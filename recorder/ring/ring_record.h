// recorder/ring/ring_record.h - how records lie in a ring: plain structs, native byte order, each
// followed by its columns.
//
// Every record begins with a RecordHead and has a size that is a multiple of 8. A ring is read by
// the program that wrote it or one of the same version (RingHeader::version) on the same machine.
#pragma once
#include <cstdint>

namespace redecode {

enum class RecordKind : uint32_t {
  step = 1,
  arrival = 2,
  departure = 3,
  page = 4,
  event = 5,
  outputs = 6,
  loss = 7,
};

struct RecordHead {
  uint32_t size_bytes = 0;  // of the whole record
  RecordKind kind = RecordKind::step;
  uint64_t sequence = 0;  // of the lane's committed records: 0, 1, 2 ...
};

// Then: request, position, token, slot, each u32 [rows]; wants_output u8 [rows] if has_wants.
struct StepRecord {
  RecordHead head;
  uint64_t index;
  uint64_t time_ns;  // CLOCK_MONOTONIC; UINT64_MAX: none
  uint32_t rows;
  uint32_t bucket;
  uint32_t phase;
  uint32_t has_wants;
};

struct ArrivalRecord {
  RecordHead head;
  uint32_t request, session, round, prompt_tokens, cached_tokens, max_tokens;
  uint32_t resumed;
  float temperature, top_p, min_p;
  int32_t top_k;
  uint32_t reserved;
  uint64_t seed;
};

struct DepartureRecord {
  RecordHead head;
  uint32_t request, reason;
};

struct PageRecord {
  RecordHead head;
  uint32_t request, index, page, shared;
};

// Then: text, text_bytes long.
struct EventRecord {
  RecordHead head;
  uint64_t time_ns;
  uint64_t before_step;
  uint32_t kind, request, a, b;
  uint32_t text_bytes;
  uint32_t reserved;
};

enum OutputPart : uint32_t {
  kPartDigest = 1u << 0,     // u64 [rows]
  kPartRequests = 1u << 1,   // u32 [rows]
  kPartPositions = 1u << 2,  // u32 [rows]
  kPartLogSumExp = 1u << 3,  // f32 [rows]
  kPartTop = 1u << 4,        // i32 then f32, each [rows][top_count]
  kPartLogits = 1u << 5,     // f32 [rows][vocab]
};

// Then: the parts in the order above, after row u32 [rows] and token i32 [rows]; digests first, so
// that they lie at a multiple of 8.
struct OutputsRecord {
  RecordHead head;
  uint64_t step;
  uint32_t rows;
  uint32_t parts;  // OutputPart bits
  uint32_t top_count;
  uint32_t vocab;
};

// Written before the first record that found room again.
struct LossRecord {
  RecordHead head;
  uint64_t steps, first, last;  // first UINT64_MAX: only records that are no steps
  uint64_t records, bytes;
  uint32_t causes;  // GapCause bits
  uint32_t reserved;
};

constexpr uint64_t padded(uint64_t size_bytes) { return (size_bytes + 7) & ~uint64_t{7}; }

constexpr uint64_t step_record_bytes(uint64_t rows, bool has_wants) {
  return padded(sizeof(StepRecord) + rows * 16 + (has_wants ? rows : 0));
}

constexpr uint64_t outputs_record_bytes(uint64_t rows, uint32_t parts, uint64_t top_count,
                                        uint64_t vocab) {
  uint64_t row_bytes = 8;
  if (parts & kPartDigest) row_bytes += 8;
  if (parts & kPartRequests) row_bytes += 4;
  if (parts & kPartPositions) row_bytes += 4;
  if (parts & kPartLogSumExp) row_bytes += 4;
  if (parts & kPartTop) row_bytes += 8 * top_count;
  if (parts & kPartLogits) row_bytes += 4 * vocab;
  return padded(sizeof(OutputsRecord) + rows * row_bytes);
}

}  // namespace redecode
