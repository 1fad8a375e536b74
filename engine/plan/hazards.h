// engine/plan/hazards.h - Hazards: what goes wrong by structure alone, without running a value.
//
// Happens-before by vector clocks over stream order, event edges (with generations), host issue
// and, for a launched graph, exactly the graph's edges. Two accesses of overlapping bytes, one of
// them a write, with no path between them are a race. Ownership: an access after the host freed the
// buffer; a read of bytes whose last writer wrote another buffer (stale), or that nobody wrote
// since allocation. State is carried over steps: steps do not drain.
//
// Cost: O(commands * streams + regions * log ranges); memory linear in ranges ever touched.
#pragma once
#include <memory>
#include <vector>

#include "engine/plan/access_history.h"
#include "traces/finding.h"
#include "traces/program.h"

namespace redecode {

// Where a buffer lies, for overlap: any two buffers with equal `space` share an address line.
struct Extent {
  uint64_t begin = 0;  // position on the line (an address or any numbering that keeps overlap)
  uint64_t size_bytes = 0;
  uint64_t generation = 0;  // of the block; 0: persistent
};

// Placement of all buffers of one program.
struct ExtentTable {
  std::vector<Extent> transients;   // by BufferId::index()
  std::vector<Extent> persistents;  // by BufferId::index()
  const Extent& of(BufferId id) const {
    return id.is_persistent() ? persistents[id.index()] : transients[id.index()];
  }
};

// A graph is launched by its program's first stream command: the program's host commands before
// that precede every node, later ones are unordered with the nodes until the host syncs stream 0.
enum class Submission : uint8_t {
  eager,  // side streams keep their own order from step to step
  graph,  // one launch on stream 0: every node follows what stream 0 did before, and precedes what
          // follows
};

class HazardChecker {
 public:
  explicit HazardChecker(RacePairs pairs = RacePairs::latest);
  ~HazardChecker();
  HazardChecker(HazardChecker&&) noexcept;
  HazardChecker& operator=(HazardChecker&&) noexcept;

  // Appends this step's findings to `out`, in program order of their second access, each
  // conflicting command pair once, with the bytes of all its overlaps and the buffers of the
  // widest. A command is reported against the latest unordered touches of a byte, not against those
  // that these follow and outdo: every racing byte is found, and every race that is left after a
  // fix comes to light then.
  void add(StepIndex step, const Program& program, const ExtentTable& extents,
           Submission submission, std::vector<Finding>& out);

  // The host has waited for everything: all that follows is ordered after all before.
  void sync_all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Differences between the arguments frozen into a captured program and the program that this step
// would need: one finding (kind frozen) a command. Both must have equal command lists (CHECK).
void check_frozen(StepIndex step, const Program& captured, const Program& needed,
                  std::vector<Finding>& out);

}  // namespace redecode
