#include "engine/device/precedence_order.h"

#include <algorithm>

#include "traces/error.h"

namespace redecode {
namespace {

class PrecedenceOrder final : public Order {
 public:
  explicit PrecedenceOrder(PrecedenceScript script) : script_(std::move(script)) {}

  void begin_step(StepIndex step) override {
    step_ = step;
    rules_.clear();
    for (const Precedence& p : script_.every_step) rules_.push_back({&p, {}, {}, false, false});
    const auto found = script_.steps.find(step);
    if (found == script_.steps.end()) return;
    for (const Precedence& p : found->second) rules_.push_back({&p, {}, {}, false, true});
  }

  // Both ops of a rule are of one program: a step's main program, not its input upload.
  void begin_program(const Program& program, uint32_t submission) override {
    for (Rule& rule : rules_) {
      if (rule.then.known) continue;
      const auto first = find_op(program, rule.pair->first);
      const auto then = find_op(program, rule.pair->then);
      if (!first || !then) continue;
      rule.first = {submission, *first, true};
      rule.then = {submission, *then, true};
    }
  }

  void end_step() override {
    for (const Rule& rule : rules_) {
      if (!rule.strict) continue;
      if (!rule.then.known) fail(*rule.pair, "the step has no such two ops in one program");
      if (!rule.done) fail(*rule.pair, "the first of them never ran");
    }
  }

  bool sees_ops() const override { return true; }
  bool host_paced() const override { return false; }
  uint32_t choose(uint32_t) override { return 0; }

  uint32_t choose_among(std::span<const ReadyOp> ready) override {
    Rule* holding = nullptr;
    uint32_t held_at = 0;
    for (uint32_t i = 0; i < ready.size(); ++i) {
      const auto held = std::ranges::find_if(
          rules_, [&](const Rule& rule) { return !rule.done && rule.then.is(ready[i]); });
      if (held != rules_.end()) {
        if (holding == nullptr) held_at = i;
        if (holding == nullptr || held->strict) holding = &*held;
        continue;
      }
      for (Rule& rule : rules_)
        if (rule.first.is(ready[i])) rule.done = true;
      return i;
    }
    if (!holding->strict) {
      holding->done = true;
      return held_at;
    }
    fail(*holding->pair,
         "nothing else can run while the second is held: an edge orders them, or "
         "the host waits for it");
  }

 private:
  struct Place {
    uint32_t submission = 0, command = 0;
    bool known = false;
    bool is(const ReadyOp& op) const {
      return known && op.submission == submission && op.command == command;
    }
  };
  struct Rule {
    const Precedence* pair;
    Place first, then;
    bool done;
    bool strict;  // of this step by name; else of every step that it fits
  };

  [[noreturn]] void fail(const Precedence& p, const std::string& why) const {
    throw Error(ErrorCode::usage, "the order no longer fits: step " + std::to_string(step_) + ", " +
                                      to_text(p.first) + '<' + to_text(p.then) + ": " + why);
  }

  PrecedenceScript script_;
  StepIndex step_ = 0;
  std::vector<Rule> rules_;
};

}  // namespace

std::unique_ptr<Order> precedence_order(PrecedenceScript script) {
  return std::make_unique<PrecedenceOrder>(std::move(script));
}

}  // namespace redecode
