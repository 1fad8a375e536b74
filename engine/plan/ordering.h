// engine/plan/ordering.h - Ordering: happens-before of the commands of successive programs.
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
  void begin_program(Submission submission);
  void end_program();

  void record(StreamId stream, EventId event);
  // The latest record before it in program order; no edge when there is none.
  void wait(StreamId stream, EventId event);
  void sync(StreamId stream);
  void sync_all();

  // A memory access by the next command of `stream` (or kHost).
  Epoch act(StreamId stream);
  // What precedes the latest act or edge of `stream`, itself included.
  const Clock& clock_of(StreamId stream) const;
  // What precedes every command still to come: it can take no further part in a race.
  const Clock& settled() const { return in_graph_ && launched_ ? launch_host_ : host_; }

 private:
  struct Event {
    bool recorded = false;
    Clock clock;
  };
  // The clock of `stream` with the edges that issuing its next command adds.
  Clock& issue(StreamId stream);
  void launch();

  std::array<Clock, kMaxStreams> streams_{};
  std::array<Clock, kMaxStreams> nodes_{};  // of the graph being launched
  Clock host_;
  Clock launch_host_;
  std::vector<Event> events_;
  bool in_graph_ = false;
  bool launched_ = false;
};

}  // namespace redecode
