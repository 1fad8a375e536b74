// engine/device/order.h - Order: the one door by which nondeterminism enters.
//
// Whenever more than one stream head or graph node could run next, the device asks an Order. Ready
// candidates are listed oldest first (by issue), so choice 0 is always fifo.
//
// Order strings:
//   fifo       always the oldest. Eager programs then run in issue order.
//   seed:N     uniformly random; the host runs ahead of the device until it syncs, so streams lag.
//   paced:N    as devices usually run: in eager mode an op runs as soon as it is issued, if it is
//              ready; in a launched graph the oldest node runs, but one choice in
//              kPacedDepartureOneIn is random.
//   script:S   S = step entries joined by ';', entry = STEP/CHOICE.PICK-CHOICE.PICK..., for example
//              script:41/3.2-17.1;60/0.1 . Choice points of a step count from 0; those not named,
//              and steps not named, pick 0. The host runs ahead as with seed.
//   pct:N,D    probabilistic concurrency testing: every stream has a random priority, the ready op
//              of the highest runs; at D - 1 random points of a step the stream that runs falls to
//              the lowest. A fault that needs D ordering constraints shows with a chance of at
//              least pct_bound(streams, ops, D).
//   before:S   S = STEP/A<B,C<D;STEP/... : in that step op A runs before op B, against program
//              order, and so on; all else is fifo. Ops are anchored by name, see plan/anchor.h, so
//              the order survives edits elsewhere. The host runs ahead as with seed.
//
// Steps and the choice points of a step ascend. A script that picks a candidate that is not there
// throws Error usage from choose: it belongs to another program. Script as a value: script.h.
// Random draws are keyed by (N, step, choice point), so the order of a step does not depend on the
// steps before it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/program.h"
#include "traces/step.h"

namespace redecode {

// Of the choices that paced orders make, one in so many departs from fifo at random.
inline constexpr uint64_t kPacedDepartureOneIn = 1024;

// An op that could run next.
struct ReadyOp {
  uint32_t submission = 0;  // as told by begin_program
  uint32_t command = 0;     // of that program
  StreamId stream = 0;
};

class Order {
 public:
  virtual ~Order() = default;
  // Called before the first command of each step; choice points count from 0 again.
  virtual void begin_step(StepIndex step) = 0;
  // Called once the step has run. Errors: usage when the order names what the step does not have.
  virtual void end_step() {}
  // Called at each submit and launch, with a number that ready ops of it carry.
  virtual void begin_program(const Program& program, uint32_t submission);
  // True: choose_among is called in place of choose, and also where only one op is ready.
  virtual bool sees_ops() const { return false; }
  // Returns a value in [0, ready.size()).
  virtual uint32_t choose_among(std::span<const ReadyOp> ready);
  // Returns a value in [0, ready_count); called only when ready_count > 1.
  virtual uint32_t choose(uint32_t ready_count) = 0;
  // True: in eager mode the device keeps up with the host, each issued op runs before the next is
  // issued (unless it waits for an event). False: the host runs ahead until it syncs.
  virtual bool host_paced() const = 0;
};

// Errors: usage with the grammar when `text` is no order string; limit when a script is longer than
// kMaxScriptBytes.
std::unique_ptr<Order> make_order(std::string_view text);

// The least chance with which one pct order of depth D shows a fault that needs D constraints, for
// n streams and k ops: 1 / (n k^(D-1)) (Burckhardt et al., ASPLOS 2010).
double pct_bound(uint32_t streams, uint64_t ops, uint32_t depth);

// Wraps an order and writes down the departures from fifo of the current step.
class RecordingOrder final : public Order {
 public:
  explicit RecordingOrder(Order& inner) : inner_(inner) {}
  void begin_step(StepIndex step) override;
  void end_step() override { inner_.end_step(); }
  void begin_program(const Program& program, uint32_t submission) override {
    inner_.begin_program(program, submission);
  }
  bool sees_ops() const override { return inner_.sees_ops(); }
  uint32_t choose_among(std::span<const ReadyOp> ready) override;
  uint32_t choose(uint32_t ready_count) override;
  bool host_paced() const override { return inner_.host_paced(); }
  // "3.2-17.1": the entry of this step without its number; empty for fifo.
  const std::string& departures() const { return departures_; }
  // Of every set of ready ops met in this step, in order: equal runs have equal digests.
  uint64_t ready_digest() const { return ready_digest_; }
  // Choice points of this step so far.
  uint64_t choices() const { return choices_; }

 private:
  Order& inner_;
  uint32_t note(uint32_t ready_count, uint32_t pick);

  uint64_t choices_ = 0;
  uint64_t ready_digest_ = 0;
  std::string departures_;
};

// Largest script accepted, in bytes.
inline constexpr size_t kMaxScriptBytes = size_t{1} << 20;

}  // namespace redecode
