#include "engine/model/model.h"

#include <utility>

#include "engine/plan/emitter.h"

namespace redecode {

Model::Model(EngineSettings settings, IndexKeyType index_key, const KernelIds& kernels)
    : settings_(std::move(settings)),
      index_key_(index_key),
      kernels_(kernels),
      inputs_(InputLayout::of(settings_)),
      open_names_(std::make_shared<NameTable>()),
      open_persistents_(std::make_shared<std::vector<PersistentBuffer>>()) {
  names_ = open_names_;
  persistents_ = open_persistents_;
}

BufferId Model::add_persistent(std::string_view name, uint64_t size_bytes, uint64_t page_bytes) {
  const auto id = BufferId::persistent(static_cast<uint32_t>(open_persistents_->size()));
  open_persistents_->push_back({open_names_->intern(name), size_bytes, page_bytes, true});
  return id;
}

NameId Model::intern(std::string_view name) { return open_names_->intern(name); }

void Model::add_frame_buffers(uint32_t vocab) {
  inputs_id_ = add_persistent("inputs", inputs_.size_bytes);
  staging_id_ = add_persistent("inputs_staging", inputs_.size_bytes);
  logits_id_ = add_persistent("logits", uint64_t{inputs_.max_rows} * vocab * sizeof(float));
  tokens_id_ = add_persistent("sampled_tokens", uint64_t{inputs_.max_rows} * sizeof(int32_t));
  host_name_ = intern("inputs.write");
  upload_name_ = intern("inputs.upload");
}

void Model::freeze() {
  open_names_.reset();
  open_persistents_.reset();
}

Program Model::lower_inputs(const Batch& batch) const {
  Emitter e(names_, persistents_, StreamPlan::single());
  const uint64_t size_bytes = inputs_.upload_bytes(batch.row_count());
  e.host(host_name_, {{staging_id_, Access::write, 0, size_bytes}});
  e.copy(Lane::main, upload_name_, {staging_id_, Access::read, 0, size_bytes},
         {inputs_id_, Access::write, 0, size_bytes});
  return e.take();
}

}  // namespace redecode
