#include "engine/explore/content_model.h"

#include <algorithm>
#include <utility>

#include "traces/check.h"

namespace redecode {
namespace {

struct Range {
  uint64_t begin = 0, end = 0;
};

Range range_of(const Region& r, const ExtentTable& extents) {
  const Extent& extent = extents.of(r.buffer);
  const uint64_t offset = std::min(r.offset_bytes, extent.size_bytes);
  const uint64_t size = std::min(r.size_bytes, extent.size_bytes - offset);
  return {extent.begin + offset, extent.begin + offset + size};
}

template <class F>
void each_region(const Program& program, const Command& c, F&& f) {
  for (const auto& ranges : {program.operands_of(c), program.touched_of(c)})
    for (const Region& r : ranges)
      if (r.access != Access::none && r.size_bytes > 0) f(r);
}

}  // namespace

ContentModel::ContentModel(const Program& program, const ExtentTable& extents,
                           const OpGraph& graph) {
  collect_cells(program, extents, graph);
  collect_uses(program, extents, graph);
  run_program_order(program, extents, graph);
}

void ContentModel::collect_cells(const Program& program, const ExtentTable& extents,
                                 const OpGraph& graph) {
  for (const uint32_t command : graph.commands)
    each_region(program, program.commands[command], [&](const Region& r) {
      const Range range = range_of(r, extents);
      borders_.push_back(range.begin);
      borders_.push_back(range.end);
    });
  std::ranges::sort(borders_);
  borders_.erase(std::ranges::unique(borders_).begin(), borders_.end());
  const size_t cells = borders_.empty() ? 0 : borders_.size() - 1;
  initial_.resize(cells);
  judged_.resize(cells);
}

std::pair<uint32_t, uint32_t> ContentModel::cells_of(uint64_t begin, uint64_t end) const {
  // Cells wholly inside: a border that is no region's lies in no cell or beside all of them.
  const auto first = std::ranges::lower_bound(borders_, begin) - borders_.begin();
  const auto last = std::ranges::upper_bound(borders_, end) - borders_.begin() - 1;
  if (last <= first) return {0, 0};
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
}

void ContentModel::collect_uses(const Program& program, const ExtentTable& extents,
                                const OpGraph& graph) {
  first_.push_back(0);
  for (const uint32_t command : graph.commands) {
    const size_t from = uses_.size();
    each_region(program, program.commands[command], [&](const Region& r) {
      const Range range = range_of(r, extents);
      const auto [begin, end] = cells_of(range.begin, range.end);
      for (uint32_t cell = begin; cell < end; ++cell) {
        Use use;
        use.cell = cell;
        use.version = r.version;
        use.anything_goes = r.request != UINT32_MAX && r.version == 0;
        if (reads(r.access)) uses_.push_back(use);
        if (!writes(r.access)) continue;
        use.is_write = true;
        use.defines = r.access != Access::scratch;
        uses_.push_back(use);
      }
    });
    std::stable_sort(uses_.begin() + static_cast<std::ptrdiff_t>(from), uses_.end(),
                     [](const Use& a, const Use& b) { return a.is_write < b.is_write; });
    first_.push_back(static_cast<uint32_t>(uses_.size()));
  }
}

// Fills what a run is compared with. Allocations are host time: they undefine cells in program
// order.
void ContentModel::run_program_order(const Program& program, const ExtentTable& extents,
                                     const OpGraph& graph) {
  std::vector<bool> undefined(initial_.size());
  if (program.persistents != nullptr) {
    for (size_t i = 0; i < program.persistents->size(); ++i) {
      const Extent& extent = extents.persistents[i];
      const auto [begin, end] = cells_of(extent.begin, extent.begin + extent.size_bytes);
      for (uint32_t cell = begin; cell < end; ++cell) {
        judged_[cell] = true;
        const PersistentBuffer& p = (*program.persistents)[i];
        if (p.version != 0) initial_[cell].version = p.version;
        undefined[cell] = !p.written;
      }
    }
  }
  now_ = initial_;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    if (c.kind == CommandKind::allocate) {
      const Extent& extent = extents.of(c.buffer);
      const auto [begin, end] = cells_of(extent.begin, extent.begin + extent.size_bytes);
      for (uint32_t cell = begin; cell < end; ++cell) undefined[cell] = true;
    }
    const uint32_t node = graph.node_of[i];
    if (node == OpGraph::kNoNode) continue;
    for (uint32_t u = first_[node]; u < first_[node + 1]; ++u) {
      Use& use = uses_[u];
      if (!use.is_write) {
        use.expected_writer = now_[use.cell].writer;
        use.always_wrong = undefined[use.cell];
        continue;
      }
      now_[use.cell] = {node + 1, use.version};
      undefined[use.cell] = !use.defines;
    }
  }
  expected_ = now_;
}

bool ContentModel::conflict(uint32_t a, uint32_t b) const {
  for (uint32_t i = first_[a]; i < first_[a + 1]; ++i)
    for (uint32_t j = first_[b]; j < first_[b + 1]; ++j)
      if (uses_[i].cell == uses_[j].cell && (uses_[i].is_write || uses_[j].is_write)) return true;
  return false;
}

ContentFault ContentModel::run(std::span<const uint32_t> order) {
  REDECODE_CHECK_OP(order.size(), ==, size_t{node_count()});
  std::ranges::copy(initial_, now_.begin());
  for (const uint32_t node : order) {
    for (uint32_t u = first_[node]; u < first_[node + 1]; ++u) {
      const Use& use = uses_[u];
      Content& content = now_[use.cell];
      if (use.is_write) {
        content = {node + 1, use.version};
        continue;
      }
      if (use.anything_goes) continue;
      const bool wrong =
          use.always_wrong || (use.version != 0 ? content.version != use.version
                                                : content.writer != use.expected_writer);
      if (wrong) return {true, node, content.writer - 1};
    }
  }
  for (size_t cell = 0; cell < now_.size(); ++cell) {
    const Content &is = now_[cell], &was = expected_[cell];
    if (!judged_[cell]) continue;
    const bool same_version = is.version != 0 && is.version == was.version;
    if (!same_version && is.writer != was.writer) return {true, OpGraph::kNoNode, is.writer - 1};
  }
  return {};
}

}  // namespace redecode
