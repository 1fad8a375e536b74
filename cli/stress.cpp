#include "cli/stress.h"

#include <charconv>
#include <cstdio>
#include <memory>

#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stress_run.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint32_t kMostSeeds = 100000;

struct StressFlags {
  StressOptions options;
  ModeOptions mode;
};

// The order's kind and its first seed: "paced:1" or "seed:7"; fifo means paced:1.
void set_orders(StressOptions& o) {
  const std::string& order = o.mode.order;
  if (order == "fifo") return;
  const size_t colon = order.find(':');
  const std::string kind = order.substr(0, colon);
  const char* digits = colon == std::string::npos ? "" : order.c_str() + colon + 1;
  const char* end = order.c_str() + order.size();
  const auto parsed = std::from_chars(digits, end, o.first_seed);
  if ((kind != "paced" && kind != "seed") || parsed.ec != std::errc{} || parsed.ptr != end)
    throw Error(ErrorCode::usage, "stress counts seeds up from paced:N or seed:N",
                "--order " + order);
  o.order_kind = kind;
}

int run(const CommandContext& context, StressFlags& flags) {
  StressOptions& o = flags.options;
  AgentOptions& agent = o.live.workload.agent;
  if (agent.sessions == 0 || agent.rounds == 0)
    throw Error(ErrorCode::usage, "needs at least one session and one round", "stress");
  if (o.seeds == 0 || o.seeds > kMostSeeds)
    throw Error(ErrorCode::usage, "seeds must be 1 to " + std::to_string(kMostSeeds), "--seeds");
  o.mode = flags.mode.resolve();
  set_orders(o);
  o.live.batcher = live_options(o.live.model);
  o.live.mode.index_key = o.mode.index_key;
  o.live.mode.topk = o.mode.topk;
  o.live.stop = [&context] { return context.stopped(); };
  auto progress = std::make_unique<Progress>(context, "stress", "seeds");
  uint64_t done = 0;
  const StressResult result = run_stress(
      o, [&](const StressSeed&) { progress->update(++done, o.seeds); }, o.live.stop);
  progress.reset();
  std::string text = stress_header();
  for (const auto& seed : result.seeds) text += stress_line(seed);
  text += stress_total(o, result);
  emit(context, text, stress_json(o, result));
  return result.corrupted + result.error + result.timeout == 0 ? 0 : 1;
}

}  // namespace

void add_stress(CLI::App& app, CommandContext& context) {
  auto* command = add_command(
      app, context, "stress", "Count corrupted sessions over many orders",
      "redecode stress --sessions 80 --rounds 3 --seeds 20 --capture graph --streams multi \\\n"
      "    --inject early-free --tag overlap-on");
  auto flags = std::make_shared<StressFlags>();
  auto& o = flags->options;
  AgentOptions& agent = o.live.workload.agent;
  agent.sessions = 80;
  agent.rounds = 3;
  agent.max_tokens = 24;
  agent.concurrency = 24;
  command->add_option("--sessions", agent.sessions, "Agent sessions")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--rounds", agent.rounds, "Requests a session")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--ctx", agent.context_tokens, "Prompt tokens of the first round")
      ->capture_default_str();
  command->add_option("--max-tokens", agent.max_tokens, "Output tokens a request")
      ->capture_default_str();
  command->add_option("--concurrency", agent.concurrency, "Sessions at once")
      ->capture_default_str();
  command->add_option("--workload-seed", agent.seed, "Of the workload")->capture_default_str();
  command->add_option("--model", o.live.model, "See redecode record --help")->capture_default_str();
  command->add_option("--seeds", o.seeds, "Orders tried, counting up from --order's")
      ->capture_default_str();
  command->add_option("--timeout-s", o.timeout_s, "Seconds for one seed; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--threads", o.threads, "Seeds at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--tag", o.tag, "Name of this run in the output");
  flags->mode.add_to(*command);
  on_run(command, context, [&context, flags] { return run(context, *flags); });
}

}  // namespace redecode
