#include "engine/decoder/inspector.h"

#include <algorithm>

#include "engine/checks/classify.h"
#include "engine/checks/hang.h"
#include "engine/checks/page_size.h"
#include "engine/decoder/page_guard.h"

namespace redecode {
namespace {

constexpr uint64_t kSegmentSpacingBytes = uint64_t{1} << 40;
constexpr uint64_t kPersistentBase = uint64_t{1} << 62;

}  // namespace

void place_persistents(const std::vector<PersistentBuffer>& persistents, ExtentTable& extents) {
  uint64_t cursor = kPersistentBase;
  extents.persistents.clear();
  for (const auto& p : persistents) {
    extents.persistents.push_back({cursor, p.size_bytes, 0});
    cursor += p.size_bytes;
  }
}

void place_transients(const Program& program, const Bindings& bindings, ExtentTable& extents) {
  extents.transients.resize(program.transients.size());
  for (size_t i = 0; i < program.transients.size(); ++i) {
    const Binding& b = bindings.transients[i];
    extents.transients[i] = {b.place.segment * kSegmentSpacingBytes + b.place.offset_bytes,
                             b.size_bytes, b.generation};
  }
}

Inspector::Inspector(const std::vector<PersistentBuffer>& persistents) {
  place_persistents(persistents, extents_);
}

void Inspector::add_step(StepIndex step, const Program& inputs, const Program& program,
                         const Program* captured, const Bindings& bindings,
                         const PageTables& tables) {
  std::vector<Finding> fresh;
  extents_.transients.clear();
  hazards_.add(step, inputs, extents_, Submission::eager, fresh);
  certifier_.add(inputs, extents_, Submission::eager);
  place_transients(program, bindings, extents_);
  hazards_.add(step, program, extents_, captured != nullptr ? Submission::graph : Submission::eager,
               fresh);
  certifier_.add(program, extents_, captured != nullptr ? Submission::graph : Submission::eager);
  hazards_.sync_all();
  check_page_sizes(step, program, fresh);
  check_pages(step, program, tables, fresh);
  if (captured != nullptr) check_frozen(step, *captured, program, fresh);
  check_reductions(step, program, fresh);
  check_hangs(step, program, captured != nullptr ? Submission::graph : Submission::eager, fresh);
  name_checks(step, program, fresh);
  keep(fresh);
}

void Inspector::expect_reductions(const Program& program) {
  for (const Command& c : program.commands)
    for (const Arg& arg : program.args_of(c))
      if (arg.kind == ArgKind::reduction) reductions_.try_emplace({c.name, c.layer}, arg.value);
}

void Inspector::check_reductions(StepIndex step, const Program& program,
                                 std::vector<Finding>& out) {
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    for (const Arg& arg : program.args_of(c)) {
      if (arg.kind != ArgKind::reduction) continue;
      const auto [at, fresh] = reductions_.try_emplace({c.name, c.layer}, arg.value);
      if (fresh || at->second == arg.value) continue;
      Finding f;
      f.kind = FindingKind::numeric;
      f.step = step;
      f.layer = c.layer;
      f.first = {
          std::string((*program.names)[c.name]), "", c.layer, c.stream, i, step, Access::read, 0};
      f.advice = "For another batch it is cut by " + std::to_string(at->second) + ", here by " +
                 std::to_string(arg.value) + ": fix the split by the model, not by the batch.";
      out.push_back(std::move(f));
    }
  }
}

void Inspector::keep(std::vector<Finding>& fresh) {
  for (auto& f : fresh) {
    ++total_;
    const Key key{f.kind, f.first.op, f.first.layer, f.second.op, f.second.layer};
    const auto [at, is_new] = by_key_.try_emplace(key, findings_.size());
    if (is_new) {
      findings_.push_back(std::move(f));
      counts_.push_back(1);
    } else {
      ++counts_[at->second];
    }
  }
}

}  // namespace redecode
