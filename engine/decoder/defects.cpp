#include "engine/decoder/defects.h"

#include <algorithm>
#include <array>

#include "engine/kernels/kernel_table.h"
#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

bool named(const Program& p, const Command& c, std::string_view name) {
  return (*p.names)[c.name] == name;
}

bool uses(const Program& p, const Command& c, BufferId buffer) {
  const auto same = [&](const Region& r) { return r.buffer == buffer; };
  return std::ranges::any_of(p.operands_of(c), same) || std::ranges::any_of(p.touched_of(c), same);
}

// Moves each free of a buffer of this name up to right behind the last command that uses it.
void free_after_last_issue(Program& p, std::string_view buffer_name) {
  for (size_t i = 0; i < p.commands.size(); ++i) {
    const Command freed = p.commands[i];
    if (freed.kind != CommandKind::free || !named(p, freed, buffer_name)) continue;
    size_t last = i;
    while (last > 0 && !uses(p, p.commands[last - 1], freed.buffer)) --last;
    const auto at = p.commands.begin() + static_cast<std::ptrdiff_t>(last);
    std::rotate(at, p.commands.begin() + static_cast<std::ptrdiff_t>(i),
                p.commands.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// Drops the first command of this kind and name; false when the program has none (single stream).
bool drop_first(Program& p, CommandKind kind, std::string_view name) {
  const auto at = std::ranges::find_if(
      p.commands, [&](const Command& c) { return c.kind == kind && named(p, c, name); });
  if (at == p.commands.end()) return false;
  p.commands.erase(at);
  return true;
}

void early_free(Program& p, const Batch&, const Model&) { free_after_last_issue(p, "index_q"); }

void dropped_join(Program& p, const Batch&, const Model&) {
  if (!drop_first(p, CommandKind::wait, "join.indexer"))
    drop_first(p, CommandKind::wait, "join.kv");
}

// Of a stream that has joined before: dropping the wait by which it joins is an error of capture,
// which CUDA itself reports.
void dropped_fork(Program& p, const Batch&, const Model&) {
  std::array<bool, kMaxStreams> joined{};
  for (auto c = p.commands.begin(); c != p.commands.end(); ++c) {
    if (c->kind != CommandKind::wait) continue;
    const bool fork = named(p, *c, "q_lora_ready") || named(p, *c, "fork.kv");
    if (fork && joined.at(c->stream)) {
      p.commands.erase(c);
      return;
    }
    joined.at(c->stream) = true;
  }
}

void baked_position(Program& p, const Batch& batch, const Model& model) {
  const KernelId rebased = model.kernels().rope_rebased;
  for (auto& c : p.commands) {
    if (c.kind != CommandKind::launch || !named(p, c, "q_rope")) continue;
    const auto args = p.args_of(c);
    std::vector<Arg> longer(args.begin(), args.end());
    longer.push_back({batch.rows.at(0).position, ArgKind::step_value});
    c.kernel = rebased;
    c.first_arg = static_cast<uint32_t>(p.args.size());
    c.arg_count = static_cast<uint32_t>(longer.size());
    p.args.insert(p.args.end(), longer.begin(), longer.end());
  }
}

void unwritten_scratch(Program& p, const Batch&, const Model&) {
  while (drop_first(p, CommandKind::fill, "moe.zero")) {
  }
}

constexpr std::array<Defect, 8> kDefects = {{
    {"early-free",
     "the index query's buffer is freed when its last reader is issued, not after the join",
     FindingKind::race, "dsv4", early_free},
    {"dropped-join", "one wait of the main stream for a side stream is missing", FindingKind::race,
     "", dropped_join},
    {"dropped-fork", "one wait of a side stream for its input is missing, though not its first",
     FindingKind::race, "", dropped_fork},
    {"stale-pad-tail", "padding rows keep the KV slot of an earlier step instead of slot 0",
     FindingKind::foreign, "", nullptr, PadPolicy::stale_slot},
    {"baked-position",
     "the query's rotary position is an argument, frozen when a graph is captured",
     FindingKind::frozen, "", baked_position},
    {"page-size-other-dtype", "index-key pages are spaced for the next smaller key type",
     FindingKind::foreign, "dsv4", nullptr, PadPolicy::dummy_slot, false, true},
    {"split-by-batch", "attention halves its split from 16 rows on", FindingKind::numeric, "",
     nullptr, PadPolicy::dummy_slot, true},
    {"unwritten-scratch", "the buffer that sums the experts is not zeroed", FindingKind::unwritten,
     "dsv4", unwritten_scratch},
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
    out += to_text(d.found_by);
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

void DefectSet::apply(Program& program, const Batch& batch) const {
  for (const auto* d : defects_)
    if (d->transform != nullptr) d->transform(program, batch, model_);
}

}  // namespace redecode
