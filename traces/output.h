// traces/output.h - StepOutput: what one step produced, a plain value; two of them are compared bit
// for bit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "traces/digest.h"
#include "traces/step.h"

namespace redecode {

inline constexpr uint32_t kTopLogits = 20;

struct TopLogit {
  int32_t token = 0;
  float logit = 0.0f;
  bool operator==(const TopLogit&) const = default;
};

// Output of one row with wants_output.
struct RowOutput {
  uint32_t row = 0;  // index into Step::rows
  RequestId request = kNoRequest;
  uint32_t position = 0;
  int32_t token = 0;         // sampled
  Digest logits_digest = 0;  // of the row's logits [vocab] f32 as stored
  float log_sum_exp = 0.0f;
  std::vector<TopLogit> top;  // kTopLogits largest, logit descending, token ascending
  std::vector<float> logits;  // [vocab]; empty unless full logits were asked for
  bool operator==(const RowOutput&) const = default;
};

// What a probe saw of one command's outputs right after the command ran.
struct OpProbe {
  uint32_t command = 0;  // index into the step's program
  uint32_t layer = 0;
  uint32_t stream = 0;
  std::string op;     // kernel or copy name, e.g. "indexer.logits"
  Digest digest = 0;  // of all bytes written, operands in order
  std::vector<Digest>
      row_digests;  // one a batch row where the output is row-structured, else empty
  uint32_t element_size_bytes = 0;  // of the first output: 1, 2 or 4; how `values` is read
  std::vector<uint8_t> values;      // bytes of the first output; empty unless values were asked for
  bool operator==(const OpProbe&) const = default;
};

struct StepOutput {
  StepIndex step = 0;
  std::vector<RowOutput> rows;
  std::vector<OpProbe> ops;  // empty unless probed
  std::string order;         // departures of this step from fifo order, see engine/device/order.h
  bool operator==(const StepOutput&) const = default;
};

}  // namespace redecode
