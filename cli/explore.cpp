#include "cli/explore.h"

#include <memory>
#include <optional>

#include "cli/check_litmus.h"
#include "cli/explore_litmus.h"
#include "cli/explore_trace.h"
#include "cli/mode_options.h"
#include "cli/whole_number.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode explore race.litmus\n"
    "  redecode explore fleet.rdt --streams multi --capture graph --inject early-free";

struct ExploreCommand {
  std::string subject;
  std::optional<uint64_t> orders, step, preemptions, pct_depth;
  uint64_t seed = 1;
  uint32_t repeats = 100;
  int threads = 1;
  std::string device = "h200";
  ModeOptions mode;
};

constexpr uint64_t kMostOrders = 10'000'000;

uint64_t at_most(const std::optional<uint64_t>& value, uint64_t otherwise, uint64_t most,
                 const char* flag) {
  if (value && *value > most)
    throw Error(ErrorCode::usage, "must be at most " + std::to_string(most), flag);
  return value.value_or(otherwise);
}

int run_explore(const CommandContext& context, const ExploreCommand& o) {
  if (is_litmus_path(o.subject)) {
    ExploreOptions options;
    options.seed = o.seed;
    options.random_orders = options.pct_orders = at_most(o.orders, 1000, kMostOrders, "--orders");
    options.pct_depth = static_cast<uint32_t>(at_most(o.pct_depth, 2, 64, "--pct-depth"));
    if (o.preemptions)
      options.preemptions = static_cast<uint32_t>(at_most(o.preemptions, 0, 64, "--preemptions"));
    options.stop = [&context] { return context.stopped(); };
    return explore_litmus(context, o.subject, options);
  }
  const Trace trace = load_trace(o.subject);
  Mode defaults;
  defaults.index_key = trace.header.mode.index_key;
  defaults.topk = trace.header.mode.topk;
  ExploreTraceOptions options;
  options.step = o.step;
  options.random_orders = static_cast<uint32_t>(at_most(o.orders, 20, kMostOrders, "--orders"));
  options.repeats = o.repeats;
  options.threads = o.threads;
  options.device = o.device;
  return explore_trace(context, o.subject, trace, o.mode.resolve(defaults), options);
}

}  // namespace

void add_explore(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(
      app, context, "explore",
      "Search orders for one that goes wrong; shrink it; name the smallest fix", kExample);
  auto o = std::make_shared<ExploreCommand>();
  command->add_option("subject", o->subject, "Trace (.rdt) or litmus file")->required();
  command->add_option("--orders", o->orders,
                      "Random orders to try (a trace: 20 runs of the step; litmus: 1,000)");
  command->add_option("--seed", o->seed, "Litmus: of random and pct orders")->check(whole_number());
  command->add_option("--pct-depth", o->pct_depth, "Litmus: ordering constraints of pct (2)");
  command->add_option("--preemptions", o->preemptions,
                      "Litmus: search all orders with at most so many preemptions");
  command->add_option("--step", o->step, "Trace: this step; default: the first with a finding");
  command->add_option("--repeats", o->repeats, "Trace: runs that confirm a witness");
  command->add_option("--threads", o->threads, "Trace: threads of the kernels")
      ->check(CLI::Range(1, 1024));
  command->add_option("--price", o->device,
                      "Trace: device that the fix is priced for: h200, b200 or a file");
  o->mode.add_to(*command);
  on_run(command, context, [&context, o] { return run_explore(context, *o); });
}

}  // namespace redecode
