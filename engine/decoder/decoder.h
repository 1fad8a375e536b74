// engine/decoder/decoder.h - Decoder: runs one step in one mode.
//
//   Step --tables--> Batch --lower--> Program --bind--> Bindings --> submit            (eager)
//                                                               \-> capture once, launch (graph)
// Decode steps that fit a bucket run at the bucket's size in every mode; from a graph in graph
// mode. Prefill, mixed and larger steps run eager.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/decoder/batch_builder.h"
#include "engine/decoder/canary.h"
#include "engine/decoder/defects.h"
#include "engine/decoder/graph_cache.h"
#include "engine/decoder/inspector.h"
#include "engine/decoder/page_tables.h"
#include "engine/device/device.h"
#include "engine/model/model.h"
#include "traces/mode.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

struct DecoderOptions {
  Mode mode;
  bool inspect = false;  // run the structural checks on every step
  // Digests, log-sum-exp and largest logits of each row; off for throughput runs, tokens are always
  // there.
  bool summarize = true;
};

class Decoder {
 public:
  // Reserves persistent buffers, loads weights, captures graphs in graph mode. Model and device
  // must outlive the decoder. Errors: usage (order string, defect, model too large to compute),
  // environment (memory, capture rules).
  Decoder(const Model& model, Device& device, const DecoderOptions& options);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Steps must come in ascending order. Errors: corrupt for a step that contradicts the ones
  // before.
  StepOutput run(const Step& step);

  // As run, but clean whatever the mode: eager, single stream, fifo, no defect, no probe, no
  // checks; only the KV is of interest. Brings the KV and the books to where a later step needs
  // them.
  void restore(const Step& step);

  // For trying one step many times: stage brings the books and the batch to `step` without running
  // it; each run_staged then runs it from the same KV content, which it puts back first. Errors: as
  // run.
  void stage(const Step& step);
  StepOutput run_staged();

  // Another order or probe from the next step on; other mode fields are fixed at construction.
  void set_order(std::string_view order);
  void set_probe(Probe probe);
  void set_inspect(bool inspect) { inspect_ = inspect; }
  // From the next step on, changed KV pages are checked too; findings go to the inspector.
  void set_canary(bool canary);

  const Mode& mode() const { return mode_; }
  Digest weights_digest() const { return weights_digest_; }
  const Inspector& inspector() const { return inspector_; }
  const Pool& pool() const { return pool_; }
  bool last_was_graph() const { return last_was_graph_; }
  // Of all sets of ready ops that the newest step's order was offered.
  uint64_t last_ready_digest() const { return last_ready_digest_; }
  // The program that `step`'s rows lower to after run; for tests and benchmarks.
  const Program& last_program() const { return program_; }
  const Batch& last_batch() const { return batch_; }
  // Where the newest step's buffers lay: as bound, or as captured. Null before the first step.
  const Bindings* last_bindings() const { return last_bindings_; }

 private:
  void load_weights();
  Program lower(const Batch& batch, bool list_touched) const;
  bool prepare(Step& step);
  StepOutput execute(const Step& step);
  void check_canary(StepIndex step);
  void save_touched();
  void lower_step(bool watched);
  void run_eager(Order& order, Observer* observer);
  void run_graph(const CapturedGraph& captured, Order& order, Observer* observer);
  void upload_inputs(Order& order);
  StepOutput collect(const Step& step) const;
  void use_own_tokens(Step& step) const;
  void remember_own_tokens(const Step& step, const StepOutput& output);

  const Model& model_;
  Device& device_;
  Mode mode_;
  bool inspect_;
  bool summarize_;
  DefectSet defects_;
  std::unique_ptr<Order> order_;
  Pool pool_;
  std::vector<Binding> persistents_;
  PageTables tables_;
  BatchBuilder builder_;
  Inspector inspector_;
  std::unique_ptr<PageCanary> canary_;
  std::unique_ptr<GraphCache> graphs_;
  Digest weights_digest_ = 0;
  bool last_was_graph_ = false;
  uint64_t last_ready_digest_ = 0;
  Batch batch_;
  Program inputs_program_, program_;
  uint32_t inputs_rows_ = 0;  // that inputs_program_ uploads
  // A program without ranges and defects follows from these alone and serves every such step.
  struct LoweredShape {
    uint32_t rows = 0, outputs = 0;
    bool operator==(const LoweredShape&) const = default;
  };
  LoweredShape lowered_shape_;  // of program_; none: it follows from more
  Bindings bindings_;           // of the newest eager step
  const Bindings* last_bindings_ = nullptr;
  bool program_reused_ = false;  // program_ is that of the eager step before
  bool bindings_hold_ = false;   // to bind program_ again would give bindings_ again
  Bindings input_bindings_;
  std::vector<std::byte> staging_;
  // Of a staged step: what it will overwrite in persistent buffers, as it was.
  struct Saved {
    std::byte* address = nullptr;
    std::vector<std::byte> bytes;
  };
  Step staged_;
  std::vector<Saved> saved_;
  std::map<RequestId, std::map<uint32_t, int32_t>> own_tokens_;  // request -> position -> token
};

}  // namespace redecode
