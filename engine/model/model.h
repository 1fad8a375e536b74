// engine/model/model.h - Model: weights, persistent buffers and the lowering of a batch to a
// Program.
//
// A model emits commands and knows no modes: streams are an argument of lower, capture is an
// argument of submission, the device is whoever interprets. Two families: llama (llama.h) and dsv4
// (dsv4.h).
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/inputs.h"
#include "engine/model/kernel_ids.h"
#include "engine/plan/batch.h"
#include "engine/plan/stream_plan.h"
#include "traces/header.h"
#include "traces/program.h"

namespace redecode {

// How a reduction over keys is cut; correct engines fix it by the model alone.
struct SplitRule {
  uint32_t split_keys = 64;
  bool by_batch = false;  // the defect split-by-batch: halves the split from 16 rows on
  uint32_t keys(uint32_t rows) const {
    return by_batch && rows >= 16 ? split_keys / 2 : split_keys;
  }
};

struct LowerOptions {
  StreamPlan plan;
  TopkVersion topk = TopkVersion::v2;
  SplitRule split;
  IndexKeyType page_type =
      IndexKeyType::bf16;     // whose index page size is used: the model's, when right
  bool list_touched = false;  // list exact KV ranges (for hazards, page guard and probes)
};

// Device addresses of a model's persistent buffers are held by the decoder; index =
// BufferId::index().
class Model {
 public:
  virtual ~Model() = default;

  const ModelIdentity& identity() const { return identity_; }
  const EngineSettings& settings() const { return settings_; }
  const InputLayout& inputs() const { return inputs_; }
  const std::shared_ptr<const NameTable>& names() const { return names_; }
  const std::shared_ptr<const std::vector<PersistentBuffer>>& persistents() const {
    return persistents_;
  }
  IndexKeyType index_key() const { return index_key_; }
  const KernelIds& kernels() const { return kernels_; }

  BufferId inputs_buffer() const { return inputs_id_; }
  BufferId staging_buffer() const { return staging_id_; }
  BufferId logits_buffer() const { return logits_id_; }  // [max_batch_rows, vocab] f32
  BufferId tokens_buffer() const { return tokens_id_; }  // [max_batch_rows] i32, sampled

  // Commands of one step, from embedding to sampled tokens. Pure.
  virtual Program lower(const Batch& batch, const LowerOptions& options) const = 0;

  // Calls `sink` for every weight buffer in id order with its bytes. Costs what generating or
  // reading costs.
  virtual void each_weight(
      const std::function<void(BufferId, std::span<const std::byte>)>& sink) const = 0;
  virtual uint64_t weight_bytes() const = 0;

  // Commands that bring a step's inputs to the device: the host writes staging, a copy uploads it.
  Program lower_inputs(const Batch& batch) const;

 protected:
  Model(EngineSettings settings, IndexKeyType index_key, const KernelIds& kernels);

  // While a model is being built.
  BufferId add_persistent(std::string_view name, uint64_t size_bytes, uint64_t page_bytes = 0);
  NameId intern(std::string_view name);
  void add_frame_buffers(uint32_t vocab);
  void freeze();

  ModelIdentity identity_;
  EngineSettings settings_;
  IndexKeyType index_key_;
  KernelIds kernels_;
  InputLayout inputs_;
  std::shared_ptr<const NameTable> names_;
  std::shared_ptr<const std::vector<PersistentBuffer>> persistents_;
  BufferId inputs_id_, staging_id_, logits_id_, tokens_id_;

 private:
  std::shared_ptr<NameTable> open_names_;
  std::shared_ptr<std::vector<PersistentBuffer>> open_persistents_;
  NameId host_name_ = 0, upload_name_ = 0;
};

}  // namespace redecode
