// engine/decoder/batch_builder.h - BatchBuilder: a step's rows padded to its bucket, as production
// pads them.
//
// Padding rows have position 0 (sequence length 1) and slot 0, the dummy page; their token is
// whatever an earlier step left in that place of the token buffer.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/decoder/defects.h"
#include "engine/decoder/page_tables.h"
#include "engine/plan/batch.h"
#include "traces/header.h"
#include "traces/step.h"

namespace redecode {

class BatchBuilder {
 public:
  BatchBuilder(const EngineSettings& settings, PadPolicy pad);

  // `sampling` of a request comes from its arrival, which must have been seen (arrivals of `step`
  // count). Errors: corrupt for a row of an unknown request or more rows than the engine's largest
  // batch.
  Batch build(const Step& step, const PageTables& tables);

  // A batch for capture and warm-up: `bucket` rows, all of them padding with token 0.
  Batch dummy(uint32_t bucket) const;

 private:
  void pad(Batch& batch);

  EngineSettings settings_;
  PadPolicy pad_;
  uint32_t table_stride_;
  std::vector<int32_t> tail_tokens_;  // [max_batch_rows] token buffer as steps left it
  std::vector<uint32_t> tail_slots_;  // likewise
  std::map<RequestId, Sampling> sampling_;
};

}  // namespace redecode
