// engine/decoder/plan_check.h - PlanChecker: every structural check of a decoder, without running a
// value.
//
// Lowers and binds each step as Decoder does in the same mode, with its defects, warm-ups and
// captures, over address space that nothing stands behind: models of real size fit anywhere.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "engine/decoder/batch_builder.h"
#include "engine/decoder/defects.h"
#include "engine/decoder/inspector.h"
#include "engine/decoder/page_tables.h"
#include "engine/kernels/kernel_table.h"
#include "engine/memory/bindings.h"
#include "engine/model/model.h"
#include "traces/mode.h"
#include "traces/step.h"

namespace redecode {

// Hands out addresses in ascending order; they must never be followed.
class AddressSpace final : public SegmentSource {
 public:
  std::byte* reserve(uint64_t size_bytes) override;
  void release(std::byte*) override {}

 private:
  uint64_t next_ = uint64_t{1} << 20;
};

// Size of one step's program.
struct PlanSize {
  uint32_t rows = 0;  // padding included
  uint32_t commands = 0;
  uint32_t nodes = 0;  // launches, copies and fills
  uint32_t edges = 0;  // of the graph that a capture of it makes
  uint32_t streams = 0;
  uint64_t transient_bytes = 0;  // of all transients together, as if none shared memory
  bool from_graph = false;
};

// A step to look at more closely.
struct PlannedStep {
  StepIndex step = 0;
  bool has_finding = false;
  Program program;
  ExtentTable extents;
  Submission submission = Submission::eager;
};

class PlanChecker {
 public:
  // In graph mode captures every bucket, largest first, in one private pool. Model and kernels must
  // outlive the checker. Errors: usage (defect), environment with CUDA's name when a program breaks
  // the rules of capture.
  PlanChecker(const KernelTable& kernels, const Model& model, const Mode& mode);
  PlanChecker(const PlanChecker&) = delete;
  PlanChecker& operator=(const PlanChecker&) = delete;

  // Steps must come in ascending order. Errors: corrupt for a step that contradicts the ones
  // before. Cost: that of lowering, and of HazardChecker.
  void add(const Step& step);

  // Keeps, from the next step on, the first step with a finding that conflicts, else the largest.
  void keep_step() { keeping_ = true; }
  const PlannedStep& kept() const { return kept_; }

  uint64_t steps() const { return steps_; }
  uint64_t graph_steps() const { return graph_steps_; }
  // Of the step with the most commands, the earliest of equals; all zero before the first.
  const PlanSize& largest() const { return largest_; }
  const Inspector& inspector() const { return inspector_; }
  PoolStats pool() const { return pool_.stats(); }
  uint64_t persistent_bytes() const { return persistent_bytes_; }

 private:
  struct Captured {
    Program program;
    Bindings bindings;
  };
  void capture_all();
  void warm_up(const Program& program);
  PlanSize size_of(const Program& program, const Bindings& bindings) const;
  void keep_largest(uint32_t rows, const Program& program, const Bindings& bindings,
                    bool from_graph);

  const KernelTable& kernels_;
  const Model& model_;
  Mode mode_;
  DefectSet defects_;
  AddressSpace space_;
  Pool pool_;
  std::vector<Binding> persistents_;
  uint64_t persistent_bytes_ = 0;
  PageTables tables_;
  BatchBuilder builder_;
  Inspector inspector_;
  std::map<uint32_t, Captured> captured_;  // by bucket
  void keep(StepIndex step, const Program& program, const Bindings& bindings, Submission submission,
            size_t findings_before);

  PlanSize largest_;
  bool keeping_ = false;
  PlannedStep kept_;
  uint64_t steps_ = 0, graph_steps_ = 0;
};

}  // namespace redecode
