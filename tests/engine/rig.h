// tests/engine/rig.h - an engine put together from its parts, traffic made of a list, and
// recordings kept in memory.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/batcher/live.h"
#include "engine/decoder/decoder.h"
#include "engine/device/sim/sim_device.h"
#include "engine/kernels/exec.h"
#include "engine/model/factory.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode::rig {

struct RigOptions {
  std::string model = "dsv4-small";
  EngineSettings settings;
  Mode mode;
  bool inspect = false;
  int threads = 1;
  Isa isa = best_isa();
};

// Kernels, model, simulated device and decoder.
class Rig {
 public:
  explicit Rig(const RigOptions& options);

  Decoder& decoder() { return *decoder_; }
  const Model& model() const { return *model_; }

 private:
  KernelTable kernels_;
  Exec exec_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<Decoder> decoder_;
};

// Requests that arrive at given steps, whatever happens to the others.
class ListTraffic final : public TrafficSource {
 public:
  void add(StepIndex arrival, Request request);
  void poll(StepIndex now, std::vector<Request>& out) override;
  void finished(const Request&, const std::vector<int32_t>&, RequestEnd, StepIndex) override {}
  StepIndex next_arrival() const override;
  bool exhausted() const override { return next_ == requests_.size(); }

 private:
  std::vector<std::pair<StepIndex, Request>> requests_;  // by arrival
  size_t next_ = 0;
};

// Request `id` of a family that `seed` names: prompt of `prompt_tokens`, every third request drawn
// with a temperature. Does not depend on the other requests.
Request make_request(RequestId id, uint32_t prompt_tokens, uint32_t max_tokens, uint64_t seed = 1);

struct Recording {
  Trace trace;  // with outputs
  LiveProgress totals;
};

// Serves the traffic with this engine and keeps steps and outputs.
Recording record(Rig& rig, TrafficSource& traffic, BatcherOptions options);
// The same with a fresh engine of `options` and the batcher that fits its settings.
Recording record(const RigOptions& options, TrafficSource& traffic);
// An agent workload, for example "sessions=16 rounds=2 ctx=100".
Recording record_agents(const RigOptions& options, const std::string& keys);

// Decodes all steps of a trace.
struct Decoded {
  std::vector<StepOutput> outputs;
  Digest digest = 0;
  uint64_t graph_steps = 0;
  std::vector<Finding> findings;
  std::vector<uint64_t> counts;
};
Decoded decode(const RigOptions& options, const Trace& trace);

struct Difference {
  uint64_t rows = 0, logits = 0, tokens = 0;  // compared; differing in logits; in tokens
  StepIndex first_step = UINT64_MAX;
};
// Outputs of the same steps; another number of steps or rows counts every row as differing.
Difference difference(const std::vector<StepOutput>& golden,
                      const std::vector<StepOutput>& candidate);

// (logits digest, token) of every output by request and position.
using ByPosition = std::map<std::pair<RequestId, uint32_t>, std::pair<Digest, int32_t>>;
ByPosition by_position(const std::vector<StepOutput>& outputs);

// Settings for a model with the pages that `tokens` need.
EngineSettings settings_for(const std::string& model, uint32_t tokens = 32768);

Mode mode_of(CaptureMode capture, StreamMode streams, const std::string& order = "fifo");

// The twelve ways to run a step: capture x streams x order.
std::vector<Mode> all_modes();

// 64 requests whose outputs end one after the other, so that decode batches of every size from 64
// to 1 come by; the shortest is `shortest` tokens long.
ListTraffic every_bucket_traffic(uint32_t requests, uint32_t shortest);

}  // namespace redecode::rig
