#include "recorder/workload_agent.h"

#include <algorithm>

#include "recorder/workload_check.h"
#include "traces/check.h"
#include "traces/random.h"

namespace redecode {
namespace {

// Separate the random streams of one seed.
enum Purpose : uint64_t { kSystemPrompt = 1, kContext, kNewTokens, kNewCount, kThink, kSampling };

constexpr uint64_t kMaxPromptTokens = uint64_t{1} << 24;

void require(bool holds, const char* what) { require_option(holds, "Agent", what); }

void check_options(const AgentOptions& o) {
  require(o.sessions > 0 && o.rounds > 0, "sessions and rounds must be at least 1");
  require(uint64_t{o.sessions} * o.rounds < kNoRequest, "sessions * rounds must fit 32 bits");
  require(o.context_tokens > 0, "ctx must be at least 1");
  require(o.system_percent <= 100, "system_percent must be at most 100");
  require(o.new_tokens_min <= o.new_tokens_max, "new_min must be at most new_max");
  require(o.think_steps_min <= o.think_steps_max, "think_min must be at most think_max");
  require(o.max_tokens > 0, "max_tokens must be at least 1");
  check_drawing("Agent", o.vocab, o.sampling);
  require(o.context_tokens + uint64_t{o.rounds} * (uint64_t{o.new_tokens_max} + o.max_tokens) <=
              kMaxPromptTokens,
          "the last round's prompt would pass 16,777,216 tokens");
  require(o.arrivals.empty() || o.arrivals.size() >= o.sessions,
          "there are fewer arrivals than sessions");
  require(std::is_sorted(o.arrivals.begin(), o.arrivals.end()), "arrivals must ascend");
}

uint64_t between(uint64_t bits, uint32_t least, uint32_t most) {
  return least + random_below(bits, uint64_t{most} - least + 1);
}

}  // namespace

AgentWorkload::AgentWorkload(const AgentOptions& options) : options_(options) {
  check_options(options_);
  if (options_.concurrency == 0) options_.concurrency = options_.sessions;
  append_random(system_prompt_, uint64_t{options_.context_tokens} * options_.system_percent / 100,
                kSystemPrompt, 0);
  sessions_.resize(options_.sessions);
}

void AgentWorkload::append_random(std::vector<int32_t>& tokens, uint64_t count, uint64_t purpose,
                                  uint64_t of) {
  RandomSequence draws(random_bits(options_.seed, of, purpose));
  for (uint64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(draws.below(options_.vocab)));
}

StepIndex AgentWorkload::start_of(SessionId session) const {
  return options_.arrivals.empty() ? 0 : options_.arrivals[session];
}

bool AgentWorkload::may_start() const {
  return active_ < options_.concurrency && counters_.sessions_started < options_.sessions;
}

void AgentWorkload::poll(StepIndex now, std::vector<Request>& out) {
  while (!ready_.empty() && ready_.begin()->first <= now) {
    const SessionId session = ready_.begin()->second;
    ready_.erase(ready_.begin());
    out.push_back(request_of(session));
  }
  while (may_start() && start_of(counters_.sessions_started) <= now) {
    const SessionId session = counters_.sessions_started++;
    ++active_;
    std::vector<int32_t>& history = sessions_[session].history;
    history = system_prompt_;
    append_random(history, options_.context_tokens - history.size(), kContext, session);
    out.push_back(request_of(session));
  }
}

Request AgentWorkload::request_of(SessionId session) {
  Session& state = sessions_[session];
  Request request;
  request.id = session * options_.rounds + state.round;
  request.session = session;
  request.round = state.round;
  request.prompt = std::move(state.history);
  request.max_tokens = options_.max_tokens;
  request.stop_token = options_.stop_token;
  request.sampling = options_.sampling;
  request.sampling.seed = random_bits(options_.seed, request.id, kSampling);
  state.history.clear();
  return request;
}

void AgentWorkload::finished(const Request& request, const std::vector<int32_t>& output,
                             RequestEnd end, StepIndex now) {
  REDECODE_CHECK_OP(request.session, <, counters_.sessions_started);
  Session& state = sessions_[request.session];
  REDECODE_CHECK_OP(request.round, ==, state.round);
  const bool whole = end == RequestEnd::stop || end == RequestEnd::length;
  if (!whole || ++state.round == options_.rounds) {
    --active_;
    ++(whole ? counters_.sessions_completed : counters_.sessions_cut);
    return;
  }
  state.history = request.prompt;
  state.history.insert(state.history.end(), output.begin(), output.end());
  const uint64_t next = uint64_t{request.id} + 1;
  append_random(state.history,
                between(random_bits(options_.seed, next, kNewCount), options_.new_tokens_min,
                        options_.new_tokens_max),
                kNewTokens, next);
  const uint64_t think = between(random_bits(options_.seed, next, kThink), options_.think_steps_min,
                                 options_.think_steps_max);
  ready_.insert({now + think, request.session});
}

StepIndex AgentWorkload::next_arrival() const {
  StepIndex next = ready_.empty() ? UINT64_MAX : ready_.begin()->first;
  if (may_start()) next = std::min(next, start_of(counters_.sessions_started));
  return next;
}

bool AgentWorkload::exhausted() const {
  return active_ == 0 && counters_.sessions_started == options_.sessions;
}

}  // namespace redecode
