// engine/device/pct_order.h - PCT: random priorities of streams, and few random changes of them.
//
// Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS
// 2010, with streams as threads and ops as steps.
#pragma once
#include <memory>

#include "engine/device/order.h"

namespace redecode {

inline constexpr uint32_t kMaxPctDepth = 64;

// depth >= 1: number of ordering constraints a fault may need.
std::unique_ptr<Order> pct_order(uint64_t seed, uint32_t depth);

}  // namespace redecode
