#include "engine/batcher/options.h"

#include <algorithm>
#include <string>

#include "traces/error.h"

namespace redecode {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::usage, std::string("Batcher options: ") + what);
}

}  // namespace

BatcherOptions checked(BatcherOptions options) {
  require(options.page_size > 0, "page_size must be at least 1");
  require(options.page_count > 1, "page_count must be at least 2: page 0 is the dummy page");
  require(uint64_t{options.page_size} * options.page_count <= UINT32_MAX,
          "page_size * page_count must fit 32 bits");
  require(options.max_batch_rows > 0, "max_batch_rows must be at least 1");
  require(options.max_seq_len > 1, "max_seq_len must be at least 2");
  require(options.vocab <= INT32_MAX, "vocab must fit a token");
  require(options.buckets.empty() || options.buckets.front() > 0, "buckets must be at least 1");
  const auto falling = std::adjacent_find(options.buckets.begin(), options.buckets.end(),
                                          [](uint32_t a, uint32_t b) { return a >= b; });
  require(falling == options.buckets.end(), "buckets must ascend");
  if (options.prefill_chunk_rows == 0) options.prefill_chunk_rows = options.max_batch_rows;
  if (options.max_running == 0) options.max_running = options.max_batch_rows;
  const uint32_t most_rows = std::max(options.max_batch_rows, options.prefill_chunk_rows);
  require(options.buckets.empty() || options.buckets.back() <= most_rows,
          "the largest bucket must be at most the rows of a step");
  options.max_running = std::min(options.max_running, options.max_batch_rows);
  return options;
}

EngineSettings engine_settings(const BatcherOptions& options) {
  const BatcherOptions full = checked(options);
  return {.page_size = full.page_size,
          .page_count = full.page_count,
          .max_batch_rows = std::max(full.max_batch_rows, full.prefill_chunk_rows),
          .max_seq_len = full.max_seq_len,
          .buckets = full.buckets};
}

BatcherOptions batcher_options(const EngineSettings& settings) {
  BatcherOptions options;
  options.page_size = settings.page_size;
  options.page_count = settings.page_count;
  options.max_batch_rows = settings.max_batch_rows;
  options.max_seq_len = settings.max_seq_len;
  options.buckets = settings.buckets;
  return checked(options);
}

}  // namespace redecode
