// engine/plan/ordering.h - Ordering: happens-before of the commands of successive programs.
//
// A programmatic launch (PDL) is no edge: what a kernel does before its dependency wait follows
// what the kernel before it on the stream followed, not that kernel. Outside actors (a NIC, another
// rank) follow no host issue.
//
// Edges: stream order, event record to wait, host issue to stream op, sync, and for a graph the
// launch. A graph program is launched by its first stream command: host commands before it precede
// every node, later ones are unordered with the nodes until the host syncs stream 0, which waits
// for the whole graph.
#pragma once
#include <vector>

#include "engine/plan/clock.h"
#include "engine/plan/hazards.h"

namespace redecode {

class Ordering {
 public:
  // Events are local to a program: those of earlier programs are forgotten.
  // `outside_streams` is Program::outside_streams.
  void begin_program(Submission submission, uint32_t outside_streams = 0);
  void end_program();

  void record(StreamId stream, EventId event);
  // The latest record before it in program order; no edge when there is none.
  void wait(StreamId stream, EventId event);
  void sync(StreamId stream);
  void sync_all();

  // A memory access by the next command of `stream` (or kHost).
  Epoch act(StreamId stream);
  // The same by a kernel: what a later kernel may overtake before its dependency wait.
  Epoch act_of_kernel(StreamId stream);
  // What a PDL-launched kernel does before its dependency wait.
  Epoch act_before_wait(StreamId stream);
  // What precedes the latest act or edge of `stream`, itself included.
  const Clock& clock_of(StreamId stream) const;
  // What precedes the latest act_before_wait of any stream, itself included.
  const Clock& prologue_clock() const { return prologue_; }
  // What precedes every command still to come: it can take no further part in a race.
  // Outside actors follow nothing of themselves: with one in the program nothing is settled.
  const Clock& settled() const {
    if (outside_streams_ != 0) return nothing_;
    return in_graph_ && launched_ ? launch_host_ : host_;
  }

 private:
  struct Event {
    bool recorded = false;
    Clock clock;
  };
  // The clock of `stream` with the edges that issuing its next command adds.
  Clock& issue(StreamId stream);
  Epoch advance(StreamId stream);
  // The clock at the start of the stream's latest kernel, with the edges taken since.
  Clock& start_of(StreamId stream);
  void launch();

  std::array<Clock, kMaxStreams> streams_{};
  std::array<Clock, kMaxStreams> nodes_{};  // of the graph being launched
  std::array<Clock, kMaxStreams> stream_starts_{}, node_starts_{};
  Clock host_;
  Clock launch_host_;
  Clock nothing_;
  std::vector<Event> events_;
  Clock prologue_;
  uint32_t prologues_ = 0;
  std::array<uint64_t, 2 * kMaxPrologues> prologue_times_{};
  uint32_t outside_streams_ = 0;
  bool in_graph_ = false;
  bool launched_ = false;
};

}  // namespace redecode
