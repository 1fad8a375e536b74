// engine/decoder/probe.h - OpProber: digests every command's output right after it ran, and changes
// nothing.
//
// It reads memory and keeps its own books: no allocation from the pool, no command, no edge. Only
// rows of the step are digested; padding rows may differ between runs without meaning.
#pragma once
#include <vector>

#include "engine/device/device.h"
#include "engine/plan/batch.h"
#include "traces/mode.h"
#include "traces/output.h"

namespace redecode {

class OpProber final : public Observer {
 public:
  // `step_program` lists the exact KV ranges of this step (a captured program lists those of its
  // dummy batch). Both must outlive the prober. `probe` is ops or values.
  OpProber(const Program& step_program, const Batch& batch, Probe probe);

  void ran(const Program& program, const Bindings& bindings, uint32_t command) override;

  // What was seen, in command order.
  std::vector<OpProbe> take();

 private:
  const Program& program_;
  const Batch& batch_;
  Probe probe_;
  std::vector<OpProbe> seen_;
};

}  // namespace redecode
