// cli/stress_run.h - the same workload under many orders: how many sessions are corrupted, and what
// a clean result proves.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/live_session.h"
#include "traces/mode.h"

namespace redecode {

struct StressOptions {
  LiveRequest live;  // model, settings, workload; recorded once, eager and single-stream
  Mode mode;  // of the replays; the order's seed is replaced by first_seed, first_seed + 1, ...
  std::string order_kind = "paced";  // or "seed"
  uint64_t first_seed = 1;
  uint32_t seeds = 20;
  double timeout_s =
      0.0;          // of one seed; 0: none. Sessions that are not through by then count as timeout
  int threads = 1;  // seeds at once
  std::string tag;
};

struct StressSeed {
  uint64_t seed = 0;
  uint32_t sessions = 0, max_rounds = 0, corrupted = 0, error = 0, timeout = 0;
  uint64_t tokens = 0;
  double seconds = 0.0;
  std::optional<StepIndex> first_step;  // that differs from golden
  Digest digest = 0;
};

struct StressResult {
  std::vector<StressSeed> seeds;  // those that ran, ascending
  uint32_t sessions = 0, max_rounds = 0, corrupted = 0, error = 0, timeout = 0;
  uint64_t tokens = 0;
  double seconds = 0.0;
  Digest golden = 0;
};

// `done` is called after each seed, in the order in which they finish.
StressResult run_stress(const StressOptions& options,
                        const std::function<void(const StressSeed&)>& done,
                        const std::function<bool()>& stop);

// "bf16 keys, graph, multi-stream, paced:1..20, ...".
std::string describe_orders(const StressOptions& options);
std::string stress_header();
std::string stress_line(const StressSeed& seed);
std::string stress_total(const StressOptions& options, const StressResult& result);
std::string stress_json(const StressOptions& options, const StressResult& result);

}  // namespace redecode
