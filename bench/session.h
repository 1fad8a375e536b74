// bench/session.h - DecodeSession: a decoder with a full batch of requests that decode side by
// side, one token a step, each fed with what it sampled.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/direct_calls.h"
#include "engine/decoder/decoder.h"
#include "engine/device/sim/sim_device.h"
#include "engine/kernels/exec.h"
#include "engine/model/factory.h"
#include "traces/check.h"

namespace redecode {

class DecodeSession {
 public:
  // `batches` become the buckets. Errors: as those of make_model and Decoder.
  DecodeSession(const std::string& spec, const std::vector<uint32_t>& batches,
                const DecoderOptions& options)
      : tap_(kernels_, sim_) {
    const KernelIds ids = add_exact_kernels(kernels_);
    SettingsRequest request;
    request.max_batch_rows = 64;
    request.buckets = batches;
    settings_ = default_settings(spec, request);
    model_ = make_model(spec, settings_, options.mode.index_key, ids);
    decoder_ = std::make_unique<Decoder>(*model_, tap_, options);
  }

  // Replaces all requests by `batch` new ones and decodes `context` tokens of each.
  void start(uint32_t batch, uint32_t context) {
    old_first_request_ = first_request_;
    old_batch_ = batch_;
    first_request_ += batch_;
    batch_ = batch;
    position_ = 0;
    tokens_.clear();
    for (uint32_t r = 0; r < batch; ++r) tokens_.push_back(static_cast<int32_t>(1 + r % 7));
    for (uint32_t i = 0; i < context; ++i) {
      make_step();
      run();
    }
  }

  // The next step, to be run before another is made. CHECKs that the sequences have room.
  void make_step() {
    REDECODE_CHECK_OP(position_, <, settings_.max_seq_len);
    Step step;
    step.index = index_++;
    step.phase = Phase::decode;
    step.bucket = batch_;
    if (position_ == 0) add_comings_and_goings(step);
    const uint32_t page_size = settings_.page_size;
    for (uint32_t r = 0; r < batch_; ++r) {
      const PageId page = page_of(r, position_ / page_size);
      if (position_ % page_size == 0)
        step.page_changes.push_back({first_request_ + r, position_ / page_size, page, false});
      step.rows.push_back({first_request_ + r, position_, tokens_[r],
                           page * page_size + position_ % page_size, true});
    }
    step_ = std::move(step);
    ++position_;
  }

  void run() {
    output_ = decoder_->run(step_);
    for (const RowOutput& row : output_.rows) tokens_[row.row] = row.token;
  }

  TapDevice& tap() { return tap_; }
  Exec& exec() { return exec_; }
  Decoder& decoder() { return *decoder_; }
  const Model& model() const { return *model_; }
  // Steps that the sequences still have room for.
  uint32_t room() const {
    const uint32_t pages = (settings_.page_count - 1) / batch_;
    return std::min(settings_.max_seq_len, pages * settings_.page_size) - position_;
  }

 private:
  void add_comings_and_goings(Step& step) {
    for (uint32_t r = 0; r < old_batch_; ++r)
      step.departures.push_back({old_first_request_ + r, DepartureReason::finished});
    for (uint32_t r = 0; r < batch_; ++r) {
      Arrival arrival;
      arrival.request = first_request_ + r;
      arrival.session = r;
      arrival.prompt_tokens = 1;
      arrival.max_tokens = settings_.max_seq_len;
      step.arrivals.push_back(arrival);
    }
  }

  // The requests' pages lie interleaved, as they do when sequences grow side by side.
  PageId page_of(uint32_t request, uint32_t index) const {
    const PageId page = 1 + index * batch_ + request;
    REDECODE_CHECK_OP(page, <, settings_.page_count);
    return page;
  }

  KernelTable kernels_;
  Exec exec_{1};
  SimDevice sim_{kernels_, exec_};
  TapDevice tap_;
  EngineSettings settings_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
  uint32_t batch_ = 0, old_batch_ = 0;
  RequestId first_request_ = 0, old_first_request_ = 0;
  uint32_t position_ = 0;
  StepIndex index_ = 0;
  std::vector<int32_t> tokens_;
  Step step_;
  StepOutput output_;
};

}  // namespace redecode
