#include "engine/decoder/defects.h"

#include <algorithm>
#include <array>

#include "engine/decoder/defect_transforms.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr std::array<Defect, 18> kDefects = {{
    {"early-free",
     "the index query's buffer is freed when its last reader is issued, not after the join",
     FindingKind::race, "dsv4", "pool-lifetime", defect::early_free},
    {"dropped-join", "one wait of the main stream for a side stream is missing", FindingKind::race,
     "", "race", defect::dropped_join},
    {"dropped-fork", "one wait of a side stream for its input is missing, though not its first",
     FindingKind::race, "", "race", defect::dropped_fork},
    {"rerecorded-event",
     "the main stream records a side stream's event anew before it waits for it", FindingKind::race,
     "", "event-generation", defect::rerecorded_event},
    {"baked-position",
     "the query's rotary position is an argument, frozen when a graph is captured",
     FindingKind::frozen, "", "frozen-value", defect::baked_position},
    {"baked-branch", "the host cuts the attention window to the longest context of the step",
     FindingKind::frozen, "dsv4", "frozen-value", defect::baked_branch},
    {"stale-pad-tail", "padding rows keep the KV slot of an earlier step instead of slot 0",
     FindingKind::foreign, "", "padding", nullptr, PadPolicy::stale_slot},
    {"moved-workspace",
     "the residual's buffer goes back to the pool, and kernels go on by its old address",
     FindingKind::use_after_free, "", "pool-lifetime", defect::moved_workspace},
    {"page-size-other-dtype", "index-key pages are spaced for the next smaller key type",
     FindingKind::foreign, "dsv4", "page-size", nullptr, PadPolicy::dummy_slot, false, true},
    {"block-freed-in-flight",
     "a layer's input is freed when its last reader is issued, not after the join",
     FindingKind::race, "dsv4", "pool-lifetime", defect::block_freed_in_flight},
    {"reused-pinned", "the host writes the staging buffer again while the copy may still read it",
     FindingKind::race, "", "input-refresh", nullptr, PadPolicy::dummy_slot, false, false,
     defect::reused_pinned},
    {"missing-pdl-wait", "a kernel reads its input before it waits for the kernel that writes it",
     FindingKind::race, "", "pdl", defect::missing_pdl_wait},
    {"frozen-sampler-offset",
     "the sampler's position is an argument, frozen when a graph is captured", FindingKind::frozen,
     "", "generator-offset", defect::frozen_sampler_offset},
    {"split-by-batch", "attention halves its split from 16 rows on", FindingKind::numeric, "",
     "reduction-shape", nullptr, PadPolicy::dummy_slot, true},
    {"racy-topk-ties", "from 16 rows on the top-k compares rounded scores", FindingKind::numeric,
     "dsv4", "reduction-shape", defect::racy_topk_ties},
    {"unwritten-scratch", "the buffer that sums the experts is not zeroed", FindingKind::unwritten,
     "dsv4", "unwritten", defect::unwritten_scratch},
    {"overlapping-graphs", "another graph of the pool writes where this one keeps a layer's input",
     FindingKind::race, "", "pool-lifetime", defect::overlapping_graphs},
    {"late-kv-handover",
     "the KV of a layer arrives on a transfer stream that joins after attention has read it",
     FindingKind::race, "", "kv-in-flight", defect::late_kv_handover},
}};

}  // namespace

std::span<const Defect> all_defects() { return kDefects; }

const Defect* find_defect(std::string_view name) {
  const auto at = std::ranges::find(kDefects, name, &Defect::name);
  return at == kDefects.end() ? nullptr : &*at;
}

std::string defect_help() {
  std::string out;
  for (const auto& d : kDefects) {
    out += "  ";
    out += d.name;
    out.append(24 - std::min<size_t>(d.name.size(), 23), ' ');
    out += d.summary;
    out += " (found as: ";
    out += d.check;
    out += d.family.empty() ? ")\n" : "; " + std::string(d.family) + " only)\n";
  }
  return out;
}

DefectSet::DefectSet(const std::vector<std::string>& names, const Model& model) : model_(model) {
  for (const auto& name : names) {
    const Defect* d = find_defect(name);
    if (d == nullptr)
      throw Error(ErrorCode::usage, "no such defect. Defects:\n" + defect_help(),
                  "--inject " + name);
    if (!d->family.empty() && d->family != model.identity().family)
      throw Error(
          ErrorCode::usage,
          "needs a " + std::string(d->family) + " model, this is " + model.identity().family,
          "--inject " + name);
    if (d->smaller_page_type && model.index_key() == IndexKeyType::fp4)
      throw Error(ErrorCode::usage, "fp4 index keys have no smaller key type", "--inject " + name);
    defects_.push_back(d);
  }
}

PadPolicy DefectSet::pad() const {
  for (const auto* d : defects_)
    if (d->pad != PadPolicy::dummy_slot) return d->pad;
  return PadPolicy::dummy_slot;
}

void DefectSet::apply(LowerOptions& options) const {
  for (const auto* d : defects_) {
    if (d->split_by_batch) options.split.by_batch = true;
    if (d->smaller_page_type)
      options.page_type =
          model_.index_key() == IndexKeyType::bf16 ? IndexKeyType::fp8 : IndexKeyType::fp4;
  }
}

void DefectSet::apply_to_inputs(Program& inputs) const {
  for (const auto* d : defects_)
    if (d->transform_inputs != nullptr) d->transform_inputs(inputs);
}

void DefectSet::apply(Program& program, const Batch& batch) const {
  for (const auto* d : defects_)
    if (d->transform != nullptr) d->transform(program, batch, model_);
}

}  // namespace redecode
