// tests/engine/rig.h - an engine put together from its parts, traffic made of a list, and
// recordings kept in memory.
#pragma once
#include <algorithm>
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
#include "recorder/workload.h"
#include "traces/random.h"
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
EngineSettings settings_for(const std::string& model, uint32_t tokens = 12800);

Mode mode_of(CaptureMode capture, StreamMode streams, const std::string& order = "fifo");

// The twelve ways to run a step: capture x streams x order.
std::vector<Mode> all_modes();

// 64 requests whose outputs end one after the other, so that decode batches of every size from 64
// to 1 come by; the shortest is `shortest` tokens long.
ListTraffic every_bucket_traffic(uint32_t requests, uint32_t shortest);

// Bodies.

namespace detail {

inline constexpr uint32_t kVocab = 512;

class MemorySink final : public StepSink {
 public:
  explicit MemorySink(Trace& trace) : trace_(trace) {}
  void scheduled(const Step& step) override {
    trace_.steps.push_back(step);
    trace_.digest = combine(trace_.digest, digest_step(step));
  }
  void produced(const StepOutput& output) override { trace_.outputs.push_back(output); }

 private:
  Trace& trace_;
};

inline uint64_t rows_of(const std::vector<StepOutput>& outputs) {
  uint64_t rows = 0;
  for (const StepOutput& output : outputs) rows += output.rows.size();
  return rows;
}

}  // namespace detail

inline Rig::Rig(const RigOptions& options) : exec_(options.threads, options.isa) {
  const KernelIds ids = add_exact_kernels(kernels_);
  model_ = make_model(options.model, options.settings, options.mode.index_key, ids);
  device_ = std::make_unique<SimDevice>(kernels_, exec_, SimOptions{options.mode.poison});
  decoder_ = std::make_unique<Decoder>(*model_, *device_,
                                       DecoderOptions{options.mode, options.inspect, true});
}

inline void ListTraffic::add(StepIndex arrival, Request request) {
  requests_.emplace_back(arrival, std::move(request));
  std::ranges::stable_sort(requests_, {}, [](const auto& r) { return r.first; });
}

inline void ListTraffic::poll(StepIndex now, std::vector<Request>& out) {
  for (; next_ < requests_.size() && requests_[next_].first <= now; ++next_)
    out.push_back(requests_[next_].second);
}

inline StepIndex ListTraffic::next_arrival() const {
  return next_ < requests_.size() ? requests_[next_].first : UINT64_MAX;
}

inline Request make_request(RequestId id, uint32_t prompt_tokens, uint32_t max_tokens,
                            uint64_t seed) {
  Request request;
  request.id = id;
  request.session = id;
  request.max_tokens = max_tokens;
  for (uint32_t i = 0; i < prompt_tokens; ++i) {
    const uint64_t bits = random_bits(seed, i, id);
    request.prompt.push_back(static_cast<int32_t>(random_below(bits, detail::kVocab)));
  }
  if (id % 3 == 2) {
    request.sampling.temperature = 0.8f;
    request.sampling.top_p = 0.95f;
    request.sampling.seed = 1000 + id;
  }
  return request;
}

inline Recording record(Rig& rig, TrafficSource& traffic, BatcherOptions options) {
  Recording out;
  ModelIdentity identity = rig.model().identity();
  identity.weights_digest = rig.decoder().weights_digest();
  out.trace.header.model = identity;
  out.trace.header.engine = rig.model().settings();
  out.trace.header.mode = rig.decoder().mode();
  options.vocab = identity.vocab;
  Batcher batcher(options);
  detail::MemorySink sink(out.trace);
  StepSink* sinks[] = {&sink};
  const auto run = [&](const Step& step) { return rig.decoder().run(step); };
  out.totals = run_live(traffic, batcher, run, sinks).totals;
  return out;
}

inline Recording record(const RigOptions& options, TrafficSource& traffic) {
  Rig rig(options);
  return record(rig, traffic, batcher_options(options.settings));
}

inline Recording record_agents(const RigOptions& options, const std::string& keys) {
  WorkloadSpec spec = parse_workload("agent " + keys);
  spec.set_vocab(detail::kVocab);
  const auto traffic = make_workload(spec);
  return record(options, *traffic);
}

inline Decoded decode(const RigOptions& options, const Trace& trace) {
  Rig rig(options);
  Decoded out;
  for (const Step& step : trace.steps) {
    out.outputs.push_back(rig.decoder().run(step));
    out.digest = combine(out.digest, digest_output(out.outputs.back()));
    out.graph_steps += rig.decoder().last_was_graph() ? 1 : 0;
  }
  const Inspector& inspector = rig.decoder().inspector();
  out.findings = inspector.findings();
  for (size_t i = 0; i < out.findings.size(); ++i) out.counts.push_back(inspector.count(i));
  return out;
}

inline Difference difference(const std::vector<StepOutput>& golden,
                             const std::vector<StepOutput>& candidate) {
  Difference out;
  bool same_shape = golden.size() == candidate.size();
  for (size_t i = 0; same_shape && i < golden.size(); ++i)
    same_shape =
        golden[i].step == candidate[i].step && golden[i].rows.size() == candidate[i].rows.size();
  if (!same_shape) {
    out.rows = std::max(detail::rows_of(golden), detail::rows_of(candidate));
    out.logits = out.tokens = out.rows;
    out.first_step = 0;
    return out;
  }
  for (size_t i = 0; i < golden.size(); ++i) {
    for (size_t r = 0; r < golden[i].rows.size(); ++r) {
      const RowOutput& a = golden[i].rows[r];
      const RowOutput& b = candidate[i].rows[r];
      const bool logits =
          a.logits_digest != b.logits_digest || a.request != b.request || a.position != b.position;
      ++out.rows;
      out.logits += logits ? 1 : 0;
      out.tokens += a.token != b.token ? 1 : 0;
      if (logits) out.first_step = std::min(out.first_step, golden[i].step);
    }
  }
  return out;
}

inline ByPosition by_position(const std::vector<StepOutput>& outputs) {
  ByPosition out;
  for (const StepOutput& output : outputs)
    for (const RowOutput& row : output.rows)
      out[{row.request, row.position}] = {row.logits_digest, row.token};
  return out;
}

inline EngineSettings settings_for(const std::string& model, uint32_t tokens) {
  EngineSettings settings = default_settings(model);
  settings.page_count = tokens / settings.page_size + 1;
  return settings;
}

inline Mode mode_of(CaptureMode capture, StreamMode streams, const std::string& order) {
  Mode mode;
  mode.capture = capture;
  mode.streams = streams;
  mode.order = order;
  return mode;
}

inline std::vector<Mode> all_modes() {
  std::vector<Mode> out;
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph})
    for (const auto streams : {StreamMode::single, StreamMode::multi})
      for (const char* order : {"fifo", "seed:7", "paced:3"})
        out.push_back(mode_of(capture, streams, order));
  return out;
}

inline ListTraffic every_bucket_traffic(uint32_t requests, uint32_t shortest) {
  ListTraffic traffic;
  for (uint32_t i = 0; i < requests; ++i)
    traffic.add(0, make_request(i, 3 + (i * 7) % 11, shortest + i));
  return traffic;
}

}  // namespace redecode::rig
