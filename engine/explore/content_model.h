// engine/explore/content_model.h - ContentModel: a program run by contents, without values.
//
// The bytes that ops touch fall into cells that no region border cuts. A run keeps, for each cell,
// which op wrote it last and which version it holds. It goes wrong when a read sees a version other
// than the one stated, or, where none is stated, another writer than in program order; or when a
// persistent cell ends with another content than in program order. A run costs tens of nanoseconds
// an op.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/plan/hazards.h"
#include "engine/plan/op_graph.h"

namespace redecode {

struct ContentFault {
  bool wrong = false;
  uint32_t node = OpGraph::kNoNode;    // the read; kNoNode: it is the content at the end
  uint32_t writer = OpGraph::kNoNode;  // of what was seen; kNoNode: nobody in this program
};

class ContentModel {
 public:
  ContentModel(const Program& program, const ExtentTable& extents, const OpGraph& graph);

  // True when both touch a cell and one writes it: their order can matter.
  bool conflict(uint32_t a, uint32_t b) const;

  // The first fault of a run of all nodes in `order`, a linear extension of the graph.
  ContentFault run(std::span<const uint32_t> order);

  uint32_t node_count() const { return static_cast<uint32_t>(first_.size() - 1); }
  uint32_t cell_count() const { return static_cast<uint32_t>(initial_.size()); }

 private:
  struct Use {
    uint32_t cell = 0;
    uint32_t version = 0;
    uint32_t expected_writer = 0;  // reads: in program order, as writer_ holds it
    bool is_write = false;
    bool defines = true;         // writes: false for scratch
    bool always_wrong = false;   // reads: nobody has written since the allocation
    bool anything_goes = false;  // reads that are not judged
  };
  struct Content {
    uint32_t writer = 0;  // node + 1; 0: as before the program
    uint32_t version = 0;
    bool operator==(const Content&) const = default;
  };
  void collect_cells(const Program& program, const ExtentTable& extents, const OpGraph& graph);
  void collect_uses(const Program& program, const ExtentTable& extents, const OpGraph& graph);
  void run_program_order(const Program& program, const ExtentTable& extents, const OpGraph& graph);
  std::pair<uint32_t, uint32_t> cells_of(uint64_t begin, uint64_t end) const;

  std::vector<uint64_t> borders_;  // ascending; cell i is [borders_[i], borders_[i + 1])
  std::vector<uint32_t> first_;    // [nodes + 1] into uses_
  std::vector<Use> uses_;          // reads of a node before its writes
  std::vector<Content> initial_;   // [cells]
  std::vector<Content> expected_;  // [cells] at the end
  std::vector<bool> judged_;       // [cells] compared at the end
  std::vector<Content> now_;       // [cells] of the run
};

}  // namespace redecode
