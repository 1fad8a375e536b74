// traces/convert/stats.h - what a trace adds up to: the function behind `redecode trace stats`, as
// values, text for people and JSON.
//
// One pass over the records and one over the sizes of their messages; memory does not grow with the
// file but for the requests that run and the numbers of the sessions.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/convert/distribution.h"
#include "traces/trace_file.h"

namespace redecode {

struct StepStats {
  struct ByPhase {
    uint64_t steps = 0, rows = 0;
  };
  std::array<ByPhase, 3> phases;  // by Phase
  std::optional<StepIndex> first, last;
  Distribution batch_rows;               // rows of a step
  Distribution decode_rows;              // the same, of decode steps only
  Distribution sequence_tokens;          // length of a request's sequence, once a request and step
  std::map<uint32_t, uint64_t> buckets;  // steps by bucket; 0: none held the batch
  uint64_t rows = 0, rows_left_out = 0, padding_rows = 0;
  uint64_t sampled_tokens = 0;  // rows that want an output
  uint64_t page_changes = 0, shared_pages = 0;
  Distribution between_us;  // from a step to the next one, where both times are known
  uint64_t times_known = 0, times_backwards = 0;
  uint64_t first_us = 0, last_us = 0;
};

struct RequestStats {
  uint64_t arrivals = 0, resumed = 0;  // resumed ones are not counted as arrivals
  uint64_t sessions = 0;
  uint32_t rounds_max = 0;               // of one session, by the rounds that arrivals name
  std::array<uint64_t, 4> departures{};  // by DepartureReason
  Distribution prompt_tokens, asked_tokens;
  uint64_t prompt_tokens_sum = 0, cached_tokens_sum = 0;  // of arrivals, resumed ones left out
  uint64_t recomputed_tokens = 0;  // prompts of resumed ones, without what the cache still had
  RateOverTime by_time{1000};      // microseconds, where times are known
  RateOverTime by_step{1};
};

struct ExchangeStats {
  uint64_t count = 0, streamed = 0, chunks = 0;
  std::map<uint32_t, uint64_t> statuses;
  std::array<uint64_t, 4> ends{};  // by ExchangeEnd
  uint64_t sessions = 0;
  uint64_t prompt_tokens = 0, output_tokens = 0, prompt_bytes = 0, text_bytes = 0;
  Distribution first_us;    // from the request's last byte to the answer's first
  Distribution between_us;  // from one streamed event to the next
  Distribution whole_us;    // from the request's last byte to the answer's last
  Distribution prompt_lengths, output_lengths;  // tokens, where known
  RateOverTime by_time{1000};
};

struct GapStats {
  uint64_t gaps = 0, steps = 0, bytes = 0;
};

// Uncompressed bytes of all records of one kind, as they lie in the file.
struct KindStats {
  std::string kind;
  uint64_t records = 0, bytes = 0;
};

struct TraceStats {
  std::string path;
  TraceHeader header;
  FileSummary summary;
  StepStats steps;
  RequestStats requests;
  ExchangeStats exchanges;
  std::map<uint32_t, GapStats> gaps;  // by GapCause bits
  std::map<EventKind, uint64_t> events;
  std::vector<KindStats> kinds;  // in the order of the schema; only kinds that there are
};

// Errors: as TraceReader; usage (a run).
TraceStats trace_stats(const std::filesystem::path& path);

std::string to_text(const TraceStats& stats);  // aligned lines, each ended
std::string to_json(const TraceStats& stats);

}  // namespace redecode
