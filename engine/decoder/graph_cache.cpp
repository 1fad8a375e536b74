#include "engine/decoder/graph_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "traces/error.h"

namespace redecode {

GraphCache::GraphCache(Device& device, Pool& pool, const std::vector<Binding>& persistents)
    : device_(device), pool_(pool), persistents_(persistents), pool_id_(pool.make_private_pool()) {}

GraphCache::~GraphCache() {
  for (const auto& [bucket, captured] : graphs_) device_.destroy(captured.graph);
}

void GraphCache::warm_up(const Program& program, Order& order) {
  for (int run = 0; run < kWarmUps; ++run) {
    const Bindings bindings = redecode::bind(program, pool_, kOrdinaryPool, persistents_);
    device_.submit(program, bindings, order, nullptr);
    device_.sync(order, nullptr);
    release(bindings, pool_);
    pool_.reclaim(UINT32_MAX);
  }
}

void GraphCache::capture(std::span<const uint32_t> buckets, Order& order,
                         const std::function<Program(uint32_t bucket)>& lower) {
  std::vector<uint32_t> descending(buckets.begin(), buckets.end());
  std::ranges::sort(descending, std::greater<>());
  for (const uint32_t bucket : descending) {
    CapturedGraph captured;
    captured.program = lower(bucket);
    warm_up(captured.program, order);
    pool_.begin_capture();
    captured.bindings = redecode::bind(captured.program, pool_, pool_id_, persistents_);
    const CaptureResult result = device_.capture(captured.program, captured.bindings);
    pool_.end_capture();
    release(captured.bindings, pool_);
    if (result.status != CaptureStatus::ok) {
      const Command& c = captured.program.commands.at(result.command);
      throw Error(ErrorCode::environment,
                  "capture failed: " + std::string(capture_error_name(result.status)) + ": " +
                      result.message,
                  "bucket " + std::to_string(bucket) + ", `" +
                      std::string((*captured.program.names)[c.name]) + "` of layer " +
                      std::to_string(c.layer));
    }
    captured.graph = result.graph;
    graphs_.emplace(bucket, std::move(captured));
  }
}

const CapturedGraph* GraphCache::find(uint32_t bucket) const {
  const auto at = graphs_.find(bucket);
  return at == graphs_.end() ? nullptr : &at->second;
}

}  // namespace redecode
