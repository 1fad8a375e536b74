// replayer/engine_instance.h - EngineInstance: kernels, model, simulated device and decoder, wired
// together.
#pragma once
#include <memory>
#include <string>

#include "engine/decoder/decoder.h"
#include "engine/device/sim/sim_device.h"
#include "engine/kernels/exec.h"
#include "engine/kernels/kernel_table.h"
#include "engine/model/model.h"
#include "traces/header.h"

namespace redecode {

struct EngineRequest {
  std::string model;  // as factory.h
  EngineSettings settings;
  Mode mode;
  int threads = 1;
  bool inspect = false;
  bool summarize = true;
};

class EngineInstance {
 public:
  // Errors: usage, missing, environment (the cuda backend of a build without CUDA, no memory).
  explicit EngineInstance(const EngineRequest& request);
  EngineInstance(const EngineInstance&) = delete;
  EngineInstance& operator=(const EngineInstance&) = delete;

  Decoder& decoder() { return *decoder_; }
  const Decoder& decoder() const { return *decoder_; }
  const Model& model() const { return *model_; }
  SimDevice& device() { return *device_; }
  const KernelTable& kernels() const { return kernels_; }
  Exec& exec() { return exec_; }

  // The model's identity with the digest of the weights that were loaded.
  ModelIdentity identity() const;

 private:
  KernelTable kernels_;
  Exec exec_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<Decoder> decoder_;
};

// What writers put into headers.
std::string writer_name();

}  // namespace redecode
