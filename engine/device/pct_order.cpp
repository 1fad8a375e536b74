#include "engine/device/pct_order.h"

#include <algorithm>
#include <array>
#include <vector>

#include "traces/random.h"

namespace redecode {
namespace {

// Keys of the draws of a step, so that none is drawn twice.
constexpr uint64_t kPriorityDraw = 0, kChangeDraw = 1u << 16;

class PctOrder final : public Order {
 public:
  PctOrder(uint64_t seed, uint32_t depth) : seed_(seed), depth_(depth) {}

  void begin_step(StepIndex step) override {
    step_ = step;
    ops_run_ = 0;
    ops_total_ = 0;
    next_low_ = 0;
    for (uint32_t s = 0; s < kMaxStreams; ++s)
      priority_[s] = kMaxPctDepthPriority + (random_bits(seed_, step, kPriorityDraw + s) >> 1);
    changes_.clear();
  }

  // Change points are drawn over the ops of the step as far as it is known.
  void begin_program(const Program& program, uint32_t) override {
    for (const Command& c : program.commands)
      ops_total_ += c.kind == CommandKind::launch || c.kind == CommandKind::copy ||
                    c.kind == CommandKind::fill;
    changes_.clear();
    for (uint32_t i = 0; i + 1 < depth_ && ops_total_ > 0; ++i)
      changes_.push_back(random_below(random_bits(seed_, step_, kChangeDraw + i), ops_total_));
    std::ranges::sort(changes_);
  }

  bool sees_ops() const override { return true; }
  bool host_paced() const override { return false; }
  uint32_t choose(uint32_t) override { return 0; }

  uint32_t choose_among(std::span<const ReadyOp> ready) override {
    uint32_t pick = highest(ready);
    if (std::ranges::binary_search(changes_, ops_run_)) {
      priority_[ready[pick].stream] = kMaxPctDepthPriority - ++next_low_;
      pick = highest(ready);
    }
    ++ops_run_;
    return pick;
  }

 private:
  // Above every priority that a change gives.
  static constexpr uint64_t kMaxPctDepthPriority = kMaxPctDepth + 1;

  uint32_t highest(std::span<const ReadyOp> ready) const {
    uint32_t best = 0;
    for (uint32_t i = 1; i < ready.size(); ++i)
      if (priority_[ready[i].stream] > priority_[ready[best].stream]) best = i;
    return best;
  }

  uint64_t seed_;
  uint32_t depth_;
  StepIndex step_ = 0;
  uint64_t ops_run_ = 0, ops_total_ = 0, next_low_ = 0;
  std::array<uint64_t, kMaxStreams> priority_{};
  std::vector<uint64_t> changes_;
};

}  // namespace

std::unique_ptr<Order> pct_order(uint64_t seed, uint32_t depth) {
  return std::make_unique<PctOrder>(seed, depth);
}

}  // namespace redecode
