#include "replayer/engine_instance.h"

#include "engine/model/factory.h"
#include "traces/error.h"

namespace redecode {

EngineInstance::EngineInstance(const EngineRequest& request) : exec_(request.threads) {
  if (request.mode.backend == Backend::cuda)
    throw Error(ErrorCode::environment, "this build has no CUDA backend; use --backend sim",
                "--backend cuda");
  if (request.mode.kernels == KernelSet::fast)
    throw Error(ErrorCode::environment,
                "the sim backend has no fast kernel set; use --kernels exact", "--kernels fast");
  const KernelIds ids = add_exact_kernels(kernels_);
  model_ = make_model(request.model, request.settings, request.mode.index_key, ids);
  device_ = std::make_unique<SimDevice>(kernels_, exec_, SimOptions{request.mode.poison});
  decoder_ = std::make_unique<Decoder>(
      *model_, *device_, DecoderOptions{request.mode, request.inspect, request.summarize});
}

ModelIdentity EngineInstance::identity() const {
  ModelIdentity out = model_->identity();
  out.weights_digest = decoder_->weights_digest();
  return out;
}

std::string writer_name() { return "redecode 0.1.0"; }

}  // namespace redecode
