// engine/kernels/sample.h - the next token, and the summary of a row of logits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels/exec.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

// Per row, as static input buffers hold them; all [rows].
struct SamplingColumns {
  const float* temperature = nullptr;
  const int32_t* top_k = nullptr;
  const float* top_p = nullptr;
  const float* min_p = nullptr;
  const uint64_t* seed = nullptr;
  const int32_t* positions = nullptr;
};

// Stateless: the draw is Philox(seed; position). temperature <= 0: argmax (ties to the lower token,
// NaN last). Otherwise logits / temperature; keep top_k, then the smallest set with mass >= top_p,
// then those with p >= min_p * p_max, candidates ordered logit descending, token ascending; inverse
// CDF in that order. p = exp(l - l_max) in fp32 with l = logit / temperature, candidates without p
// (NaN, -inf) left out; masses add up in double, in candidate order. The draw is 53 bits u; the
// token is the first whose mass up to and with itself is above u * total. Where l_max is infinite
// the argmax is taken. top_k <= 0 and top_p >= 1 keep all; one candidate always stays. A row
// without a finite logit gives token 0.
void sample_tokens(Exec& exec, const float* logits, uint32_t vocab, const SamplingColumns& columns,
                   uint32_t rows, int32_t* tokens);

// Digest, log-sum-exp (exact order: contract lanes over exp(x - max) with additions, log, + max)
// and the largest logits of one row, at most top_count of them, logit descending, token ascending,
// NaN last. log_sum_exp is NaN where a logit is.
struct LogitsSummary {
  Digest digest = 0;
  float log_sum_exp = 0.0f;
  std::vector<TopLogit> top;
};
LogitsSummary summarize_logits(std::span<const float> logits, uint32_t top_count = kTopLogits);

}  // namespace redecode
