#include "tests/explore/random_litmus.h"

#include <optional>
#include <vector>

namespace redecode {
namespace {

const char* const kActors[] = {"M", "S", "T"};
const char* const kBuffers[] = {"a", "b", "c[x]", "c[y]", "c"};

std::string operand(RandomSequence& random) { return kBuffers[random.below(5)]; }

std::string kernel(RandomSequence& random, const RandomLitmusOptions& options, bool host,
                   size_t number) {
  const bool prologue = options.prologues && !host && random.below(6) == 0;
  std::string out = prologue ? "k~ op" : "k op";
  out += std::to_string(number);
  const uint64_t shape = random.below(3);
  if (shape != 0) out += " r=" + operand(random);
  if (shape != 1) out += " w=" + operand(random);
  return out;
}

bool touch_in_conflict(const Program& p, const Command& a, const Command& b) {
  for (const Region& x : p.operands_of(a))
    for (const Region& y : p.operands_of(b)) {
      if (x.buffer != y.buffer || (!writes(x.access) && !writes(y.access))) continue;
      if (x.offset_bytes < y.offset_bytes + y.size_bytes &&
          y.offset_bytes < x.offset_bytes + x.size_bytes)
        return true;
    }
  return false;
}

bool is_act(const Command& c) {
  return c.kind == CommandKind::launch || c.kind == CommandKind::host;
}

class Machine {
 public:
  explicit Machine(const Program& program) : program_(program) {}

  std::set<std::pair<uint32_t, uint32_t>> run() {
    visit({0, 0});
    return std::move(pairs_);
  }

 private:
  struct State {
    uint32_t done = 0;  // bit mask of commands
    uint32_t host = 0;  // commands issued
    auto operator<=>(const State&) const = default;
  };

  const Command& at(uint32_t i) const { return program_.commands[i]; }
  static bool has(const State& s, uint32_t i) { return (s.done >> i & 1) != 0; }
  bool is_host_step(uint32_t i) const {
    return at(i).kind == CommandKind::host || at(i).kind == CommandKind::sync;
  }
  bool issued(const State& s, uint32_t i) const {
    return program_.is_outside(at(i).stream) || i < s.host;
  }
  bool done_before(const State& s, uint32_t i) const {
    for (uint32_t j = 0; j < i; ++j)
      if (!is_host_step(j) && at(j).stream == at(i).stream && !has(s, j)) return false;
    return true;
  }
  std::optional<uint32_t> kernel_before(uint32_t i) const {
    for (uint32_t j = i; j-- > 0;)
      if (at(j).kind == CommandKind::launch && at(j).stream == at(i).stream) return j;
    return std::nullopt;
  }
  bool can_start(const State& s, uint32_t i) const {
    if (!issued(s, i)) return false;
    const auto before = kernel_before(i);
    if (!at(i).before_wait || !before) return done_before(s, i);
    if (!has(s, *before) && !can_start(s, *before)) return false;
    // A programmatic launch is held by the events that its stream waits for, not by records.
    for (uint32_t j = *before + 1; j < i; ++j)
      if (at(j).kind == CommandKind::wait && at(j).stream == at(i).stream && !event_done(s, j))
        return false;
    return true;
  }
  bool event_done(const State& s, uint32_t wait) const {
    for (uint32_t j = wait; j-- > 0;)
      if (at(j).kind == CommandKind::record && at(j).event == at(wait).event) return has(s, j);
    return true;
  }

  bool enabled(const State& s, uint32_t i) const {
    if (has(s, i)) return false;
    if (is_host_step(i)) {
      if (i != s.host) return false;
      if (at(i).kind == CommandKind::host) return true;
      for (uint32_t j = 0; j < i; ++j)
        if (!is_host_step(j) && at(j).stream == at(i).stream && !has(s, j)) return false;
      return true;
    }
    if (at(i).kind == CommandKind::launch) return can_start(s, i);
    if (!issued(s, i) || !done_before(s, i)) return false;
    return at(i).kind != CommandKind::wait || event_done(s, i);
  }

  State after(State s, uint32_t i) const {
    s.done |= uint32_t{1} << i;
    if (is_host_step(i)) ++s.host;
    return s;
  }

  void visit(State s) {
    // Issuing is no act: but it is a step of its own, for what is issued can run at once.
    if (!seen_.insert(s).second) return;
    const auto count = static_cast<uint32_t>(program_.commands.size());
    std::vector<uint32_t> next;
    for (uint32_t i = 0; i < count; ++i)
      if (enabled(s, i)) next.push_back(i);
    for (const uint32_t a : next)
      for (const uint32_t b : next)
        if (a < b && is_act(at(a)) && is_act(at(b)) && touch_in_conflict(program_, at(a), at(b)) &&
            enabled(after(s, a), b) && enabled(after(s, b), a))
          pairs_.emplace(a, b);
    if (s.host < count && !is_host_step(s.host)) visit({s.done, s.host + 1});
    for (const uint32_t i : next) visit(after(s, i));
  }

  const Program& program_;
  std::set<State> seen_;
  std::set<std::pair<uint32_t, uint32_t>> pairs_;
};

}  // namespace

std::string random_litmus(RandomSequence& random, const RandomLitmusOptions& options) {
  std::string out =
      "scenario random\nscope graph\npersist a @A =v\npersist b @B =v\n"
      "persist c @C =v\n";
  if (options.outside && random.below(4) == 0) out += "async T\n";
  const uint64_t streams = 2 + random.below(2);
  const uint64_t ops = options.least_ops + random.below(options.most_ops - options.least_ops + 1);
  for (uint64_t i = 1; i <= ops; ++i) {
    out += std::to_string(i) + ' ';
    const std::string actor = kActors[random.below(streams)];
    const std::string event = "e" + std::to_string(random.below(2));
    switch (random.below(10)) {
      case 0:
        out += "H " + kernel(random, options, true, i);
        break;
      case 1:
      case 2:
        out += actor + " rec " + event;
        break;
      case 3:
      case 4:
        out += actor + " wait " + event;
        break;
      case 5:
        // Only a stream that has ops can be named: M always gets one below.
        out += options.syncs ? "H sync M" : actor + " rec " + event;
        break;
      default:
        out += actor + ' ' + kernel(random, options, false, i);
    }
    out += '\n';
  }
  return out + std::to_string(ops + 1) + " M k last\n";
}

std::set<std::pair<uint32_t, uint32_t>> flippable_pairs(const Program& program) {
  return Machine(program).run();
}

}  // namespace redecode
