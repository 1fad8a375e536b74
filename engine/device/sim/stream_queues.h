// engine/device/sim/stream_queues.h - StreamQueues: what is issued, what of it is ready, what runs
// next.
//
// One FIFO queue a stream. Ops and the nodes of a graph at the head of its queue are candidates
// once all they wait for has run; an Order picks among them. Records, waits, poisonings and
// finished graphs at a head retire by themselves, as soon as they can. Everything issued can
// finish: a wait binds, when it is issued, to the newest record issued before it.
//
// A PDL-launched op (before_wait) is a candidate as soon as the kernel before it on its stream is
// one, and runs before or after it.
//
// Cost: issuing and running an op is constant time for few streams, plus a shift of the list of
// candidates; nothing is allocated once the queues have grown to the longest run between two syncs.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "engine/device/device.h"
#include "engine/device/sim/graph.h"
#include "engine/device/sim/op.h"

namespace redecode {

// A recording of an event: its generation.
using EventToken = uint32_t;
inline constexpr EventToken kNeverRecorded = UINT32_MAX;

// To whom and with what an op is shown; all null: to nobody.
struct Audience {
  Observer* observer = nullptr;
  const Program* program = nullptr;
  const Bindings* bindings = nullptr;
};

class StreamQueues {
 public:
  explicit StreamQueues(Exec& exec) : exec_(exec) {}

  // Ops issued next are resolved in this arena, which start() clears.
  OpArena& arena() { return arena_; }

  // Before the first command of a submit or a launch: gives back all memory if nothing is pending,
  // and with it every token handed out so far. Returns the number of this submission.
  uint32_t start();

  void issue_op(StreamId stream, const Op& op, const Audience& audience, bool before_wait = false);
  EventToken issue_record(StreamId stream);
  void issue_wait(StreamId stream, EventToken token);
  void issue_poison(StreamId stream, std::byte* address, uint64_t size_bytes);
  // `graph` must live until nothing is pending.
  void issue_graph(StreamId stream, const SimGraph& graph, Observer* observer);

  // Each runs candidates until the condition holds. `observer`, unless null, replaces that of the
  // audience. When the order throws, what has not run stays pending.
  void run_ready(Order& order);                    // none is ready
  void run_stream(StreamId stream, Order& order);  // the stream is empty
  void run_all(Order& order, Observer* observer);  // nothing is pending

  bool idle() const { return pending_ == 0; }

 private:
  enum class ItemKind : uint8_t { op, record, wait, poison, graph };
  struct Item {
    ItemKind kind = ItemKind::op;
    StreamId stream = 0;
    uint32_t submission = 0;
    bool before_wait = false;
    bool offered = false, ran = false;  // before_wait: a candidate, and done, ahead of its turn
    EventToken token = 0;
    Op op;
    const SimGraph* graph = nullptr;
    std::byte* address = nullptr;
    uint64_t size_bytes = 0;
    Audience audience;
  };
  struct Token {
    bool done = false;
    uint32_t waiting_streams = 0;  // bit mask
  };
  struct Queue {
    std::vector<uint32_t> items;
    size_t head = 0;
    bool empty() const { return head == items.size(); }
  };
  // Orders candidates by age: (item, node).
  using Candidate = uint64_t;
  static Candidate candidate(uint32_t item, uint32_t node) { return (uint64_t{item} << 32) | node; }

  Item& append(ItemKind kind, StreamId stream);
  void settle_first(StreamId stream);
  void settle(uint32_t streams);
  uint32_t settle_stream(StreamId stream);
  void offer_prologues(StreamId stream);
  void pop(StreamId stream);
  bool start_graph(uint32_t item);
  void finish_node(uint32_t item, uint32_t node);
  void add_ready(Candidate candidate);
  void run_one(Order& order, Observer* observer);
  uint32_t choose(Order& order);

  Exec& exec_;
  OpArena arena_;
  std::vector<Item> items_;  // in issue order
  std::vector<Token> tokens_;
  std::array<Queue, kMaxStreams> queues_;
  uint32_t submission_ = 0;
  bool any_prologues_ = false;
  uint64_t pending_ = 0;          // items not retired
  std::vector<Candidate> ready_;  // ascending: oldest first
  std::vector<ReadyOp> shown_;    // the same, for an order that sees ops
  // Of the graph at the head of each stream: predecessors yet to run by node, and nodes yet to run.
  struct Running {
    std::vector<uint32_t> blockers;
    uint32_t nodes_left = 0;
  };
  std::array<Running, kMaxStreams> running_;
};

}  // namespace redecode
