// engine/batcher/options.h - what decides a schedule, beside the requests themselves.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/header.h"

namespace redecode {

struct BatcherOptions {
  uint32_t page_size = 16;          // tokens a KV page
  uint32_t page_count = 256;        // including the dummy page 0
  uint32_t max_batch_rows = 64;     // rows of a decode step
  uint32_t prefill_chunk_rows = 0;  // rows of a prefill or mixed step; 0: max_batch_rows
  uint32_t max_running = 0;         // requests holding pages at once; 0: max_batch_rows
  uint32_t max_seq_len = 2048;      // prompt and output of one request together
  std::vector<uint32_t> buckets;    // padded sizes of decode steps, ascending; empty: none padded
  bool prefix_sharing = true;
  bool mixed = false;  // prompt chunks and decode rows in one step, instead of in turns
  uint32_t vocab = 0;  // 0: tokens are only checked to be non-negative
};

// Every 0 that stands for a default replaced; max_running at most max_batch_rows, so that a decode
// step always holds every running request.
// Errors: usage (a zero size, buckets that do not ascend or pass the rows of a step, slots beyond
// 32 bits), naming the field.
BatcherOptions checked(BatcherOptions options);

// The part that a trace header keeps. max_batch_rows there is the most rows of any step.
EngineSettings engine_settings(const BatcherOptions& options);

// Options that produce steps fitting `settings`: no step has more than its max_batch_rows rows.
BatcherOptions batcher_options(const EngineSettings& settings);

}  // namespace redecode
