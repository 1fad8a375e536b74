// engine/plan/stream_plan.h - StreamPlan: which stream each lane of a model runs on; an argument of
// lowering.
//
// Model code names lanes, never streams. The lanes are those of the production decode step: the
// main stream and five side streams. A plan that puts all lanes on stream 0 makes the single-stream
// program.
#pragma once
#include <array>
#include <cstdint>

#include "traces/mode.h"
#include "traces/program.h"

namespace redecode {

enum class Lane : uint8_t {
  main,
  kv,          // KV store; also the shared expert
  compressor,  // core KV compressor
  indexer,     // index keys, index logits, top-k
  index_q,     // index query
  index_w,     // index weights
};
inline constexpr size_t kLaneCount = 6;

struct StreamPlan {
  std::array<StreamId, kLaneCount> streams{};
  uint32_t stream_count = 1;

  StreamId of(Lane lane) const { return streams[static_cast<size_t>(lane)]; }
  static StreamPlan single() { return {}; }
  static StreamPlan multi() { return {{0, 1, 2, 3, 4, 5}, 6}; }
  static StreamPlan of_mode(StreamMode mode) {
    return mode == StreamMode::single ? single() : multi();
  }
};

}  // namespace redecode
