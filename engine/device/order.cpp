// engine/device/order.cpp - the orders behind the strings of order.h.
#include "engine/device/order.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "engine/device/pct_order.h"
#include "engine/device/precedence_order.h"
#include "engine/device/script.h"
#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

class FifoOrder final : public Order {
 public:
  void begin_step(StepIndex) override {}
  uint32_t choose(uint32_t) override { return 0; }
  bool host_paced() const override { return false; }
};

class RandomOrder final : public Order {
 public:
  RandomOrder(uint64_t seed, bool paced) : seed_(seed), paced_(paced) {}

  void begin_step(StepIndex step) override {
    step_ = step;
    choice_ = 0;
  }

  uint32_t choose(uint32_t ready_count) override {
    const uint64_t bits = random_bits(seed_, step_, choice_++);
    if (paced_ && bits % kPacedDepartureOneIn != 0) return 0;
    return static_cast<uint32_t>(random_below(bits, ready_count));
  }

  bool host_paced() const override { return paced_; }

 private:
  uint64_t seed_;
  bool paced_;
  StepIndex step_ = 0;
  uint64_t choice_ = 0;
};

// Fibonacci hashing: cheap, for a digest that only has to differ when runs do.
uint64_t mixed(uint64_t digest, uint64_t value) {
  return std::rotl((digest ^ value) * 0x9E3779B97F4A7C15u, 29);
}

[[noreturn]] void fail(std::string_view text, const std::string& reason) {
  constexpr size_t kShownBytes = 64;
  std::string shown(text.substr(0, kShownBytes));
  if (text.size() > kShownBytes) shown += "...";
  throw Error(ErrorCode::usage,
              "no order '" + shown + "': " + reason +
                  "; write fifo, seed:N, paced:N, pct:N,D, before:STEP/A<B;... or " +
                  "script:STEP/CHOICE.PICK-CHOICE.PICK;STEP/..., for example seed:7 or " +
                  "script:41/3.2-17.1;60/0.1");
}

uint64_t parse_seed(std::string_view text, std::string_view number) {
  uint64_t seed = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, seed);
  if (error == std::errc::result_out_of_range) fail(text, "N must be below 2^64");
  if (error != std::errc{} || at != end) fail(text, "N must be a whole number");
  return seed;
}

bool take_prefix(std::string_view text, std::string_view prefix, std::string_view& rest) {
  if (!text.starts_with(prefix)) return false;
  rest = text.substr(prefix.size());
  return true;
}

}  // namespace

std::unique_ptr<Order> make_order(std::string_view text) {
  std::string_view rest;
  if (text == "fifo") return std::make_unique<FifoOrder>();
  if (take_prefix(text, "seed:", rest)) {
    return std::make_unique<RandomOrder>(parse_seed(text, rest), false);
  }
  if (take_prefix(text, "paced:", rest)) {
    return std::make_unique<RandomOrder>(parse_seed(text, rest), true);
  }
  if (take_prefix(text, "script:", rest)) return script_order(parse_script(rest));
  if (take_prefix(text, "before:", rest)) return precedence_order(parse_precedences(rest));
  if (take_prefix(text, "pct:", rest)) {
    const size_t comma = rest.find(',');
    if (comma == std::string_view::npos) fail(text, "pct wants a seed and a depth: pct:N,D");
    const uint64_t depth = parse_seed(text, rest.substr(comma + 1));
    if (depth == 0 || depth > kMaxPctDepth)
      fail(text, "the depth must be 1 to " + std::to_string(kMaxPctDepth));
    return pct_order(parse_seed(text, rest.substr(0, comma)), static_cast<uint32_t>(depth));
  }
  fail(text, "unknown kind");
}

void Order::begin_program(const Program&, uint32_t) {}

uint32_t Order::choose_among(std::span<const ReadyOp> ready) {
  return ready.size() > 1 ? choose(static_cast<uint32_t>(ready.size())) : 0;
}

double pct_bound(uint32_t streams, uint64_t ops, uint32_t depth) {
  double bound = 1.0 / std::max(1u, streams);
  for (uint32_t i = 1; i < depth; ++i) bound /= static_cast<double>(std::max<uint64_t>(1, ops));
  return bound;
}

void RecordingOrder::begin_step(StepIndex step) {
  choices_ = 0;
  ready_digest_ = 0;
  departures_.clear();
  inner_.begin_step(step);
}

uint32_t RecordingOrder::choose_among(std::span<const ReadyOp> ready) {
  for (const ReadyOp& op : ready)
    ready_digest_ = mixed(ready_digest_, (uint64_t{op.command} << 8) | op.stream);
  const uint32_t pick = inner_.choose_among(ready);
  return ready.size() > 1 ? note(static_cast<uint32_t>(ready.size()), pick) : pick;
}

uint32_t RecordingOrder::choose(uint32_t ready_count) {
  return note(ready_count, inner_.choose(ready_count));
}

uint32_t RecordingOrder::note(uint32_t ready_count, uint32_t pick) {
  ready_digest_ = mixed(ready_digest_, (uint64_t{ready_count} << 32) | pick);
  if (pick != 0) {
    if (!departures_.empty()) departures_ += '-';
    departures_ += std::to_string(choices_) + '.' + std::to_string(pick);
  }
  ++choices_;
  return pick;
}

}  // namespace redecode
