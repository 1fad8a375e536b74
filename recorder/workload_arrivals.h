// recorder/workload_arrivals.h - ArrivalWorkload: requests of a published trace of arrivals and
// lengths.
//
// Published traces hold no text: lengths, times and, for Mooncake, ids of the 512-token blocks of
// each prompt. Tokens are made from these: a block's tokens are a function of its id and the seed,
// so that requests with equal leading ids have equal leading tokens; prompts without ids get tokens
// of their own. Lengths are divided by `scale` to fit a small engine; shares of prefixes stay as
// they were.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "traces/import_azure.h"
#include "traces/import_mooncake.h"
#include "traces/step.h"
#include "traces/traffic.h"

namespace redecode {

inline constexpr uint32_t kMooncakeBlockTokens = 512;

// One request of a trace, in the trace's own lengths.
struct ArrivalRow {
  uint64_t arrival_us = 0;
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<uint32_t>
      block_ids;  // of kMooncakeBlockTokens each, the last one partly; may be empty
};

std::vector<ArrivalRow> arrival_rows(std::span<const MooncakeRow> rows);
std::vector<ArrivalRow> arrival_rows(std::span<const AzureRow> rows);

struct ArrivalOptions {
  uint32_t scale = 1;        // lengths are divided by this, at least 1 is left; divides 512
  uint32_t step_us = 30000;  // time that one engine step stands for
  uint32_t rows = 0;         // the first so many rows; 0: all
  uint32_t prompt_cap = 0;   // scaled prompts are cut to this; 0: not
  uint32_t output_cap = 0;   // scaled outputs are cut to this; 0: not
  uint32_t vocab = 0;        // tokens are drawn from [0, vocab); must be set
  int32_t stop_token = -1;
  uint64_t seed = 1;
  Sampling sampling;  // its seed is ignored: each request gets its own from `seed`
};

class ArrivalWorkload final : public TrafficSource {
 public:
  // Rows may come in any order; they arrive in order of time, equal times in the order given. The
  // first arrives at step 0. Request ids and sessions count arrivals.
  // Errors: usage (an option without meaning, no rows), limit (a scaled prompt above 2^24 tokens).
  ArrivalWorkload(std::vector<ArrivalRow> rows, const ArrivalOptions& options);

  void poll(StepIndex now, std::vector<Request>& out) override;
  void finished(const Request& request, const std::vector<int32_t>& output, RequestEnd end,
                StepIndex now) override;
  StepIndex next_arrival() const override;
  bool exhausted() const override { return next_ == rows_.size(); }

 private:
  StepIndex step_of(const ArrivalRow& row) const;
  std::vector<int32_t> prompt_of(const ArrivalRow& row, RequestId id) const;

  std::vector<ArrivalRow> rows_;
  ArrivalOptions options_;
  size_t next_ = 0;
};

}  // namespace redecode
