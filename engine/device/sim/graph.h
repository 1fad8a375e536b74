// engine/device/sim/graph.h - SimGraph: a captured program as nodes and edges, and the rules of
// capture.
//
// The rules are CUDA's. Stream 0 is the origin; another stream joins by waiting on an event
// recorded in the capture, and must be joined back before the end. Nodes are launches, copies and
// fills in program order; an edge stands for stream order or an event wait, each pair once, some of
// them implied by others. A wait on an event never recorded, or recorded before any node, gives no
// edge.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/sim/op.h"
#include "engine/kernels/kernel_table.h"

namespace redecode {

struct SimGraph {
  Program program;    // as captured; what observers are shown
  Bindings bindings;  // as captured
  OpArena arena;
  std::vector<Op> nodes;  // program order; an edge goes from lower to higher index
  std::vector<uint32_t> predecessor_counts;  // by node
  std::vector<uint32_t> first_successor;     // by node, and one past the last: into successors
  std::vector<uint32_t> successors;          // ascending within a node

  GraphStats stats() const {
    return {static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(successors.size())};
  }
};

// Fills `out` when the result is ok; else `out` is unspecified. Cost: linear in commands and edges.
//  implicit     an op on a stream that has not joined
//  isolation    a joined stream waits on an event that was recorded on a stream that had not joined
//  unsupported  a sync of any stream, or a host command: the host cannot act inside a graph
//  unjoined     a node at the end is no ancestor of stream 0's end; `command` is the last node of
//  the
//               first such stream
// allocate, free and record_stream are the pool's business and are passed over.
CaptureResult capture_graph(const KernelTable& kernels, const Program& program,
                            const Bindings& bindings, SimGraph& out);

}  // namespace redecode
