// bench/hazards.cpp - what the structural checks cost: the hazard checker on a synthetic program of
// 10,000 commands, and the inspector as a share of a decode step.
//
// Medians; CPU time of one thread.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/session.h"
#include "engine/plan/emitter.h"
#include "engine/plan/hazards.h"

namespace redecode {
namespace {

constexpr size_t kCommands = 10000;

// Layers that fork to four lanes, each of which makes a buffer from the state and another from
// that, and join again. Correct: the checker finds nothing.
Program synthetic_program() {
  auto names = std::make_shared<NameTable>();
  const NameId state_name = names->intern("state"), weights_name = names->intern("weights");
  const NameId made = names->intern("made"), op = names->intern("op"), edge = names->intern("edge");
  auto persistents = std::make_shared<std::vector<PersistentBuffer>>();
  persistents->push_back({state_name, 1 << 16, 0, true});
  persistents->push_back({weights_name, 1 << 20, 0, true});
  const auto state = BufferId::persistent(0), weights = BufferId::persistent(1);
  constexpr uint64_t kBytes = 4096;
  Emitter e(names, persistents, StreamPlan::multi());
  size_t commands = 0;
  for (uint32_t layer = 0; commands + 64 <= kCommands; ++layer) {
    e.set_layer(layer);
    std::vector<BufferId> results;
    for (const Lane lane : {Lane::kv, Lane::compressor, Lane::indexer, Lane::index_q}) {
      e.wait_lane(lane, Lane::main, edge);
      const BufferId first = e.allocate(lane, made, kBytes);
      const BufferId second = e.allocate(lane, made, kBytes);
      e.launch(lane, 0, op,
               {{weights, Access::read, 0, 1 << 20},
                {state, Access::read, 0, kBytes},
                {first, Access::write, 0, kBytes}},
               {});
      e.launch(lane, 0, op, {{first, Access::read, 0, kBytes}, {second, Access::write, 0, kBytes}},
               {});
      e.free(first);
      results.push_back(second);
      commands += 7;
    }
    for (const Lane lane : {Lane::kv, Lane::compressor, Lane::indexer, Lane::index_q}) {
      e.wait_lane(Lane::main, lane, edge);
      commands += 2;
    }
    for (const BufferId result : results) {
      e.launch(Lane::main, 0, op,
               {{result, Access::read, 0, kBytes}, {state, Access::update, 0, kBytes}}, {});
      e.free(result);
      commands += 2;
    }
  }
  while (commands++ < kCommands) e.fill(Lane::main, op, {state, Access::write, 0, kBytes}, 0);
  return e.take();
}

void measure_checker(bool quick) {
  const Program program = synthetic_program();
  REDECODE_CHECK_OP(program.commands.size(), ==, kCommands);
  const KernelTable no_kernels;
  Exec exec(1);
  SimDevice device(no_kernels, exec);
  Pool pool(device);
  const std::vector<Binding> persistents(program.persistents->size());
  const Bindings bindings = bind(program, pool, kOrdinaryPool, persistents);
  ExtentTable extents;
  place_persistents(*program.persistents, extents);
  place_transients(program, bindings, extents);
  HazardChecker checker;
  std::vector<Finding> findings;
  std::vector<double> seconds;
  for (StepIndex step = 0; step < (quick ? 11u : 51u); ++step) {
    seconds.push_back(seconds_of([&] {
      checker.add(step, program, extents, Submission::eager, findings);
      checker.sync_all();
    }));
  }
  REDECODE_CHECK(findings.empty());
  std::printf("hazard checker, %zu commands, 5 streams: %.2f ms a program, %.0f ns a command\n",
              program.commands.size(), median(seconds) * 1e3,
              median(seconds) * 1e9 / static_cast<double>(kCommands));
}

// Two decoders take the same steps in turns, one of them inspected.
void measure_inspector(const std::string& spec, CaptureMode capture, bool quick) {
  const std::vector<uint32_t> batches = {1, 8, 64};
  DecoderOptions options;
  options.mode.capture = capture;
  options.mode.streams = StreamMode::multi;
  options.mode.order = "paced:1";
  DecodeSession plain(spec, batches, options);
  options.inspect = true;
  DecodeSession inspected(spec, batches, options);
  constexpr uint32_t kContext = 64;
  for (const uint32_t batch : batches) {
    plain.start(batch, kContext);
    inspected.start(batch, kContext);
    std::vector<double> without, with, ratio;
    const int steps = static_cast<int>((quick ? 2048 : 8192) / (batch + 32));
    for (int i = 0; i < steps; ++i) {
      plain.make_step();
      without.push_back(seconds_of([&] { plain.run(); }));
      inspected.make_step();
      with.push_back(seconds_of([&] { inspected.run(); }));
      ratio.push_back(with.back() / without.back());
    }
    REDECODE_CHECK_OP(inspected.decoder().inspector().total(), ==, 0u);
    std::printf("%-12s %-6s %6u %12.1f %18.1f %14.1f %%\n", spec.c_str(), to_text(capture).data(),
                batch, median(without) * 1e6, median(with) * 1e6, 100.0 * (median(ratio) - 1.0));
  }
}

int run(int argc, char** argv) {
  const bool quick = has_flag(argc, argv, "--quick");
  measure_checker(quick);
  std::printf("\n%-12s %-6s %6s %12s %18s %16s\n", "model", "mode", "batch", "step, us",
              "inspected, us", "inspector adds");
  for (const char* spec : {"llama-small", "dsv4-small"})
    for (const CaptureMode capture : {CaptureMode::eager, CaptureMode::graph})
      measure_inspector(spec, capture, quick);
  return 0;
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) { return redecode::run(argc, argv); }
