// bench/overhead.cpp - what the simulator adds to its kernels: a whole decoder.run beside the same
// kernel calls alone.
//
// Both run in turns on the same memory: after each step its kernels are called once more, with the
// same operands and arguments in program order, by a plain loop. The ratio is taken step by step;
// medians; CPU time of one thread. "with summaries" adds the digest, log-sum-exp and largest logits
// of every row, which no kernel computes.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/session.h"

namespace redecode {
namespace {

struct Variant {
  const char* name;
  CaptureMode capture;
  StreamMode streams;
  const char* order;
  bool summarize;
};

constexpr Variant kVariants[] = {
    {"eager", CaptureMode::eager, StreamMode::single, "fifo", false},
    {"graph", CaptureMode::graph, StreamMode::single, "fifo", false},
    {"eager, multi-stream", CaptureMode::eager, StreamMode::multi, "seed:1", false},
    {"graph, multi-stream", CaptureMode::graph, StreamMode::multi, "paced:1", false},
    {"eager, with summaries", CaptureMode::eager, StreamMode::single, "fifo", true},
    {"graph, with summaries", CaptureMode::graph, StreamMode::single, "fifo", true},
};

struct Measured {
  double run_us = 0, kernels_us = 0, ratio = 0;
  size_t calls = 0;
};

Measured measure(DecodeSession& session, uint32_t batch, int steps) {
  constexpr uint32_t kContext = 64;
  session.start(batch, kContext);
  session.tap().keep_calls(true);
  session.make_step();
  session.run();
  session.tap().keep_calls(false);
  const DirectCalls calls = session.tap().calls();
  std::vector<double> run, kernels, ratio;
  for (int i = 0; i < steps; ++i) {
    if (session.room() == 0) session.start(batch, kContext);
    session.make_step();
    run.push_back(seconds_of([&] { session.run(); }));
    kernels.push_back(seconds_of([&] { calls.run(session.exec()); }));
    ratio.push_back(run.back() / kernels.back());
  }
  return {median(run) * 1e6, median(kernels) * 1e6, median(ratio), calls.size()};
}

void measure_model(const std::string& spec, const char* name, bool quick) {
  std::printf("\n%s\n%-24s %6s %6s %12s %12s %10s\n", name, "mode", "batch", "calls", "kernels, us",
              "step, us", "overhead");
  const std::vector<uint32_t> batches = {1, 8, 64};
  for (const Variant& variant : kVariants) {
    DecoderOptions options;
    options.mode.capture = variant.capture;
    options.mode.streams = variant.streams;
    options.mode.order = variant.order;
    options.summarize = variant.summarize;
    DecodeSession session(spec, batches, options);
    for (const uint32_t batch : batches) {
      const int steps = static_cast<int>((quick ? 4096 : 16384) / (batch + 32));
      const Measured m = measure(session, batch, steps);
      std::printf("%-24s %6u %6zu %12.1f %12.1f %8.1f %%\n", variant.name, batch, m.calls,
                  m.kernels_us, m.run_us, 100.0 * (m.ratio - 1.0));
    }
  }
}

int run(int argc, char** argv) {
  const bool quick = has_flag(argc, argv, "--quick");
  const std::string file(
      flag_value(argc, argv, "--model-file", "../shared/data/model/stories260K.bin"));
  std::printf("one core, path %s\n", isa_name(best_isa()));
  if (std::filesystem::exists(file))
    measure_model("llama2c:" + file, "llama 260K (f32, stories260K.bin)", quick);
  else
    std::printf("\nllama 260K: skipped, no checkpoint; name one with --model-file PATH\n");
  measure_model("llama-small", "llama-small (bf16)", quick);
  measure_model("dsv4-small", "dsv4-small", quick);
  return 0;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) { return redecode::run(argc, argv); }
