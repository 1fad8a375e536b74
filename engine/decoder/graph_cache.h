// engine/decoder/graph_cache.h - GraphCache: bucket -> captured graph with its frozen bindings.
//
// Captured largest bucket first, so that smaller ones reuse the blocks of larger ones; all in one
// private pool. Two warm-up runs precede each capture; they run eagerly from the ordinary pool.
#pragma once
#include <functional>
#include <map>

#include "engine/device/device.h"
#include "engine/memory/bindings.h"

namespace redecode {

struct CapturedGraph {
  Program program;
  Bindings bindings;
  GraphId graph = 0;
};

class GraphCache {
 public:
  // Device, pool and persistents must outlive the cache.
  GraphCache(Device& device, Pool& pool, const std::vector<Binding>& persistents);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  static constexpr int kWarmUps = 2;

  // Captures one graph a bucket. `lower` makes the program of a bucket's dummy batch. Errors:
  // environment with CUDA's name and the offending command when a program breaks the rules of
  // capture, or when the pool is exhausted.
  void capture(std::span<const uint32_t> buckets, Order& order,
               const std::function<Program(uint32_t bucket)>& lower);

  const CapturedGraph* find(uint32_t bucket) const;
  PoolId pool_id() const { return pool_id_; }

 private:
  void warm_up(const Program& program, Order& order);

  Device& device_;
  Pool& pool_;
  const std::vector<Binding>& persistents_;
  PoolId pool_id_;
  std::map<uint32_t, CapturedGraph> graphs_;
};

}  // namespace redecode
