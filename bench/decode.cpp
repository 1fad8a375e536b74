// bench/decode.cpp - decode tokens a second on one core, and what share of the core's read
// bandwidth the weights stream at.
//
// Every step is a whole decoder.run from a graph: inputs, kernels, sampled tokens; without digests.
// The read bandwidth is measured between the steps, once over a buffer larger than any cache and
// once over one as large as the weights. Medians; CPU time of the thread.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/session.h"

namespace redecode {
namespace {

struct Subject {
  std::string spec, name;
  uint32_t context;  // tokens of each sequence before the first measured step
  int steps;
};

// What the launches of gemm read of persistent buffers: the weights that every step streams.
uint64_t streamed_bytes(const Program& program, KernelId gemm) {
  uint64_t sum = 0;
  for (const Command& c : program.commands)
    if (c.kind == CommandKind::launch && c.kernel == gemm)
      sum += program.operands_of(c)[0].size_bytes;
  return sum;
}

uint64_t streamed_bytes(const Model& model) {
  Batch batch;
  batch.bucket = batch.real_rows = 1;
  batch.rows.resize(1);
  batch.output_rows = {0};
  batch.sampling.resize(1);
  batch.table_stride = model.inputs().table_stride;
  batch.page_size = model.settings().page_size;
  batch.page_table.assign(batch.table_stride, 0);
  return streamed_bytes(model.lower(batch, {}), model.kernels().gemm);
}

void measure(const Subject& subject, BandwidthReader& memory) {
  const std::vector<uint32_t> batches = {1, 2, 4, 8, 16, 64};
  DecoderOptions options;
  options.mode.capture = CaptureMode::graph;
  options.summarize = false;
  DecodeSession session(subject.spec, batches, options);
  const uint64_t weights = streamed_bytes(session.model());
  BandwidthReader near(weights);
  std::printf("\n%s: %.1f MB of weights a step\n", subject.name.c_str(),
              static_cast<double>(weights) * 1e-6);
  std::printf("%5s %12s %12s %14s %22s %22s\n", "batch", "step, us", "tokens/s", "weights, GB/s",
              "read, GB/s (share)", "same size (share)");
  for (const uint32_t batch : batches) {
    session.start(batch, subject.context);
    std::vector<double> steps, far_gb_s, near_gb_s;
    for (int i = 0; i < subject.steps; ++i) {
      if (session.room() == 0) session.start(batch, subject.context);
      if (i % 8 == 0) {
        far_gb_s.push_back(memory.gb_s());
        near_gb_s.push_back(near.gb_s());
        // The readers have emptied the caches.
        session.make_step();
        session.run();
        if (session.room() == 0) session.start(batch, subject.context);
      }
      session.make_step();
      steps.push_back(seconds_of([&] { session.run(); }));
    }
    const double seconds = median(steps), rate = static_cast<double>(weights) / seconds * 1e-9;
    const double far_rate = median(far_gb_s), near_rate = median(near_gb_s);
    std::printf("%5u %12.1f %12.0f %14.2f %14.2f (%3.0f %%) %14.2f (%3.0f %%)\n", batch,
                seconds * 1e6, batch / seconds, rate, far_rate, 100.0 * rate / far_rate, near_rate,
                100.0 * rate / near_rate);
  }
}

int run(int argc, char** argv) {
  const bool quick = has_flag(argc, argv, "--quick");
  const std::string file(
      flag_value(argc, argv, "--model-file", "../shared/data/model/stories260K.bin"));
  BandwidthReader memory(uint64_t{256} << 20);
  std::printf("one core, path %s, batch 1 to 64, from a graph, single stream\n",
              isa_name(best_isa()));
  if (std::filesystem::exists(file))
    measure({"llama2c:" + file, "llama 260K (f32, stories260K.bin)", quick ? 32u : 128u,
             quick ? 64 : 256},
            memory);
  else
    std::printf("\nllama 260K: skipped, no checkpoint; name one with --model-file PATH\n");
  measure({"llama-100m", "llama-100m (bf16, seeded)", quick ? 4u : 32u, quick ? 9 : 33}, memory);
  return 0;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) { return redecode::run(argc, argv); }
