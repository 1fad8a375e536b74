// engine/device/precedence_order.h - fifo, but for pairs of ops that run the other way round.
#pragma once
#include <memory>

#include "engine/device/order.h"
#include "engine/plan/anchor.h"

namespace redecode {

// choose_among and end_step throw Error usage when an op of the script is not in the step, or when
// only held ops are ready: program and order do not fit, or an edge forbids it.
std::unique_ptr<Order> precedence_order(PrecedenceScript script);

}  // namespace redecode
