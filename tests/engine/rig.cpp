#include "tests/engine/rig.h"

#include <algorithm>

#include "recorder/workload.h"
#include "traces/random.h"

namespace redecode::rig {
namespace {

constexpr uint32_t kVocab = 512;

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

uint64_t rows_of(const std::vector<StepOutput>& outputs) {
  uint64_t rows = 0;
  for (const StepOutput& output : outputs) rows += output.rows.size();
  return rows;
}

}  // namespace

Rig::Rig(const RigOptions& options) : exec_(options.threads, options.isa) {
  const KernelIds ids = add_exact_kernels(kernels_);
  model_ = make_model(options.model, options.settings, options.mode.index_key, ids);
  device_ = std::make_unique<SimDevice>(kernels_, exec_, SimOptions{options.mode.poison});
  decoder_ = std::make_unique<Decoder>(*model_, *device_,
                                       DecoderOptions{options.mode, options.inspect, true});
}

void ListTraffic::add(StepIndex arrival, Request request) {
  requests_.emplace_back(arrival, std::move(request));
  std::ranges::stable_sort(requests_, {}, [](const auto& r) { return r.first; });
}

void ListTraffic::poll(StepIndex now, std::vector<Request>& out) {
  for (; next_ < requests_.size() && requests_[next_].first <= now; ++next_)
    out.push_back(requests_[next_].second);
}

StepIndex ListTraffic::next_arrival() const {
  return next_ < requests_.size() ? requests_[next_].first : UINT64_MAX;
}

Request make_request(RequestId id, uint32_t prompt_tokens, uint32_t max_tokens, uint64_t seed) {
  Request request;
  request.id = id;
  request.session = id;
  request.max_tokens = max_tokens;
  for (uint32_t i = 0; i < prompt_tokens; ++i) {
    const uint64_t bits = random_bits(seed, i, id);
    request.prompt.push_back(static_cast<int32_t>(random_below(bits, kVocab)));
  }
  if (id % 3 == 2) {
    request.sampling.temperature = 0.8f;
    request.sampling.top_p = 0.95f;
    request.sampling.seed = 1000 + id;
  }
  return request;
}

Recording record(Rig& rig, TrafficSource& traffic, BatcherOptions options) {
  Recording out;
  ModelIdentity identity = rig.model().identity();
  identity.weights_digest = rig.decoder().weights_digest();
  out.trace.header.model = identity;
  out.trace.header.engine = rig.model().settings();
  out.trace.header.mode = rig.decoder().mode();
  options.vocab = identity.vocab;
  Batcher batcher(options);
  MemorySink sink(out.trace);
  StepSink* sinks[] = {&sink};
  const auto run = [&](const Step& step) { return rig.decoder().run(step); };
  out.totals = run_live(traffic, batcher, run, sinks).totals;
  return out;
}

Recording record(const RigOptions& options, TrafficSource& traffic) {
  Rig rig(options);
  return record(rig, traffic, batcher_options(options.settings));
}

Recording record_agents(const RigOptions& options, const std::string& keys) {
  WorkloadSpec spec = parse_workload("agent " + keys);
  spec.set_vocab(kVocab);
  const auto traffic = make_workload(spec);
  return record(options, *traffic);
}

Decoded decode(const RigOptions& options, const Trace& trace) {
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

Difference difference(const std::vector<StepOutput>& golden,
                      const std::vector<StepOutput>& candidate) {
  Difference out;
  bool same_shape = golden.size() == candidate.size();
  for (size_t i = 0; same_shape && i < golden.size(); ++i)
    same_shape =
        golden[i].step == candidate[i].step && golden[i].rows.size() == candidate[i].rows.size();
  if (!same_shape) {
    out.rows = std::max(rows_of(golden), rows_of(candidate));
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

ByPosition by_position(const std::vector<StepOutput>& outputs) {
  ByPosition out;
  for (const StepOutput& output : outputs)
    for (const RowOutput& row : output.rows)
      out[{row.request, row.position}] = {row.logits_digest, row.token};
  return out;
}

EngineSettings settings_for(const std::string& model, uint32_t tokens) {
  EngineSettings settings = default_settings(model);
  settings.page_count = tokens / settings.page_size + 1;
  return settings;
}

Mode mode_of(CaptureMode capture, StreamMode streams, const std::string& order) {
  Mode mode;
  mode.capture = capture;
  mode.streams = streams;
  mode.order = order;
  return mode;
}

std::vector<Mode> all_modes() {
  std::vector<Mode> out;
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph})
    for (const auto streams : {StreamMode::single, StreamMode::multi})
      for (const char* order : {"fifo", "seed:7", "paced:3"})
        out.push_back(mode_of(capture, streams, order));
  return out;
}

ListTraffic every_bucket_traffic(uint32_t requests, uint32_t shortest) {
  ListTraffic traffic;
  for (uint32_t i = 0; i < requests; ++i)
    traffic.add(0, make_request(i, 3 + (i * 7) % 11, shortest + i));
  return traffic;
}

}  // namespace redecode::rig
