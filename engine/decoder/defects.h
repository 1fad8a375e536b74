// engine/decoder/defects.h - named defects: small changes to a correct program or policy, for
// --inject.
//
// The engine is right without them. Each says what it changes and which check must find it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "engine/plan/batch.h"
#include "traces/finding.h"
#include "traces/program.h"

namespace redecode {

// Where padding rows get their KV slot from.
enum class PadPolicy : uint8_t {
  dummy_slot,  // position 0, slot 0: the dummy page
  stale_slot,  // the slot that stood at that row in an earlier step
};

struct Defect {
  std::string_view name;
  std::string_view summary;  // what is changed
  FindingKind found_by;      // the check that must name it
  std::string_view family;   // model family it needs; empty: any
  std::string_view check;    // its name in `redecode explain`
  // Changes the lowered program; null where the change is a policy below.
  void (*transform)(Program& program, const Batch& batch, const Model& model) = nullptr;
  PadPolicy pad = PadPolicy::dummy_slot;
  bool split_by_batch = false;
  bool smaller_page_type = false;  // index pages sized for the next smaller key type
  // Changes the upload of the step's inputs.
  void (*transform_inputs)(Program& inputs) = nullptr;
};

// All of them, in the order of the documentation.
std::span<const Defect> all_defects();
const Defect* find_defect(std::string_view name);
// One line each: name, summary, check.
std::string defect_help();

// The defects of a mode, resolved. Errors: usage for an unknown name or one that the model cannot
// have.
class DefectSet {
 public:
  DefectSet(const std::vector<std::string>& names, const Model& model);

  PadPolicy pad() const;
  void apply(LowerOptions& options) const;
  void apply(Program& program, const Batch& batch) const;
  void apply_to_inputs(Program& inputs) const;

 private:
  const Model& model_;
  std::vector<const Defect*> defects_;
};

}  // namespace redecode
