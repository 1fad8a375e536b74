// recorder/http/load.h - sends a LoadPlan to an OpenAI-compatible server, counts and measures.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/http/load_answers.h"
#include "recorder/http/load_plan.h"
#include "recorder/http/observe_times.h"

namespace redecode {

inline constexpr uint32_t kMostLoadConnections = 2000;

struct LoadOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 80;
  std::string api_key;                         // sent as a bearer token; empty: none
  uint32_t concurrency = 16;                   // chains under way at once
  double speed = 1.0;                          // due times are divided by this
  bool time_true = true;                       // false: due times do not count (closed loop)
  bool ask_model = true;                       // GET /v1/models for requests that name none
  uint32_t timeout_ms = 600000;                // of one request
  uint64_t answer_bytes = uint64_t{16} << 20;  // of one answer, headers aside
  bool keep_answers = false;
  // Chains start over until so much time has passed: those under way end. 0: each runs once.
  uint32_t repeat_ms = 0;
  // What every answer must be, and every part of one that ended early must begin; null: not
  // checked. Must outlive the run.
  const AnswerBook* book = nullptr;
  // Hostile clients, for tests of servers:
  uint64_t slow_reader_bytes_per_s = 0;  // 0: as fast as it comes
  double slow_percent = 100;             // of the requests are read so; `seed` says which
  // Of the requests, dropped at a point that `seed` fixes: before the answer or up to 3,072 bytes
  // into its body. Answers that are shorter than their point end ok.
  double disconnect_percent = 0;
  uint64_t seed = 1;
};

enum class LoadEnd : uint8_t {
  ok,
  http_error,  // a status other than 200
  no_answer,   // not connected, or the connection ended before the status
  cut,         // the connection ended inside the answer
  malformed,   // what came is no answer of this API
  too_large,   // more than LoadOptions::answer_bytes
  timed_out,
  dropped,  // by this client, as asked
};
inline constexpr size_t kLoadEnds = 8;
std::string_view to_text(LoadEnd end);

struct LoadReport {
  std::array<uint64_t, kLoadEnds> ends{};    // requests, by LoadEnd
  std::map<uint32_t, uint64_t> http_errors;  // by status
  uint64_t chains_completed = 0, chains_cut = 0;
  uint64_t prompt_tokens = 0;  // as the server's usage says, of the ok ones
  uint64_t output_tokens = 0;  // the same, or events where it says none
  uint64_t request_bytes = 0, answer_bytes = 0;
  DurationHistogram first_token_us;     // streamed answers: from sending to the first text
  DurationHistogram between_tokens_us;  // of their events with text
  DurationHistogram whole_us;           // of ok answers
  DurationHistogram late_us;            // sent after the due time by so much
  double seconds = 0;
  bool stopped = false;
  std::string model;                // as asked for
  std::string first_trouble;        // of a request that was not ok
  AnswerChecks checks;              // against LoadOptions::book
  std::vector<LoadAnswer> answers;  // when kept: the ok ones

  uint64_t requests() const;
  uint64_t count(LoadEnd end) const { return ends[static_cast<size_t>(end)]; }
};

// Returns when all chains have ended, or soon after `stop` returns true. A chain whose request does
// not end ok ends with it. `progress` is called now and then with requests ended and the total.
// Errors: usage (no such host; a concurrency of 0 or above kMostLoadConnections).
LoadReport run_load(const LoadOptions& options, const LoadPlan& plan,
                    const std::function<bool()>& stop,
                    const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace redecode
