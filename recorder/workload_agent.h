// recorder/workload_agent.h - AgentWorkload: sessions of tool-calling agents, the traffic of long
// prompts that grow a little each round.
//
// The prompt of round 0 is a system prompt that all sessions share, then tokens of the session's
// own. The prompt of round r + 1 is the prompt of round r, its output, and new tokens (the tool's
// result). Everything is a function of the options, and of the outputs that come back.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "traces/step.h"
#include "traces/traffic.h"

namespace redecode {

struct AgentOptions {
  uint32_t sessions = 60;
  uint32_t rounds = 4;            // requests a session
  uint32_t context_tokens = 300;  // prompt of round 0
  uint32_t system_percent = 25;   // of those, shared by all sessions, rounded down
  uint32_t new_tokens_min = 24;   // added between two rounds, drawn evenly
  uint32_t new_tokens_max = 56;
  uint32_t max_tokens = 48;      // output asked for in each round
  uint32_t concurrency = 0;      // sessions at once; 0: all
  uint32_t think_steps_min = 0;  // steps between the end of a round and the next, drawn evenly
  uint32_t think_steps_max = 0;
  uint32_t vocab = 0;  // tokens are drawn from [0, vocab); must be set
  int32_t stop_token = -1;
  uint64_t seed = 1;
  Sampling sampling;  // its seed is ignored: each request gets its own from `seed`
  // Step at which each session may start at the earliest, ascending; empty: all at 0.
  std::vector<StepIndex> arrivals;
};

struct AgentCounters {
  uint32_t sessions_started = 0;
  uint32_t sessions_completed = 0;  // every round ended with stop or length
  uint32_t sessions_cut = 0;        // a round was too long, cancelled or failed
};

class AgentWorkload final : public TrafficSource {
 public:
  // Errors: usage, naming the option that has no meaning.
  explicit AgentWorkload(const AgentOptions& options);

  // Request ids are session * rounds + round: the same whatever the order in which rounds end.
  void poll(StepIndex now, std::vector<Request>& out) override;
  void finished(const Request& request, const std::vector<int32_t>& output, RequestEnd end,
                StepIndex now) override;
  StepIndex next_arrival() const override;
  bool exhausted() const override;

  const AgentCounters& counters() const { return counters_; }

 private:
  struct Session {
    std::vector<int32_t> history;  // prompt of the next round
    uint32_t round = 0;
  };
  Request request_of(SessionId session);
  bool may_start() const;
  StepIndex start_of(SessionId session) const;
  void append_random(std::vector<int32_t>& tokens, uint64_t count, uint64_t purpose, uint64_t of);

  AgentOptions options_;
  std::vector<int32_t> system_prompt_;
  std::vector<Session> sessions_;
  std::set<std::pair<StepIndex, SessionId>> ready_;  // next rounds, by the step they are due
  uint32_t active_ = 0;
  AgentCounters counters_;
};

}  // namespace redecode
