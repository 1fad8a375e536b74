// engine/device/sim/stream_queues.cpp - the queues of the simulated device.
#include "engine/device/sim/stream_queues.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "traces/check.h"

namespace redecode {
namespace {

constexpr int kPoisonByte = 0xff;

void show(const Audience& audience, Observer* instead, uint32_t command) {
  if (audience.observer == nullptr) return;
  Observer& observer = instead != nullptr ? *instead : *audience.observer;
  observer.ran(*audience.program, *audience.bindings, command);
}

}  // namespace

uint32_t StreamQueues::start() {
  if (idle()) {
    items_.clear();
    tokens_.clear();
    arena_.clear();
    any_prologues_ = false;
  }
  return ++submission_;
}

void StreamQueues::issue_op(StreamId stream, const Op& op, const Audience& audience,
                            bool before_wait) {
  Item& item = append(ItemKind::op, stream);
  item.op = op;
  item.audience = audience;
  item.before_wait = before_wait;
  any_prologues_ = any_prologues_ || before_wait;
  settle_first(stream);
  if (before_wait) offer_prologues(stream);
}

EventToken StreamQueues::issue_record(StreamId stream) {
  const auto token = static_cast<EventToken>(tokens_.size());
  tokens_.emplace_back();
  append(ItemKind::record, stream).token = token;
  settle_first(stream);
  return token;
}

void StreamQueues::issue_wait(StreamId stream, EventToken token) {
  if (token == kNeverRecorded) return;
  append(ItemKind::wait, stream).token = token;
  settle_first(stream);
}

void StreamQueues::issue_poison(StreamId stream, std::byte* address, uint64_t size_bytes) {
  Item& item = append(ItemKind::poison, stream);
  item.address = address;
  item.size_bytes = size_bytes;
  settle_first(stream);
}

void StreamQueues::issue_graph(StreamId stream, const SimGraph& graph, Observer* observer) {
  Item& item = append(ItemKind::graph, stream);
  item.graph = &graph;
  if (observer != nullptr) item.audience = {observer, &graph.program, &graph.bindings};
  settle_first(stream);
}

StreamQueues::Item& StreamQueues::append(ItemKind kind, StreamId stream) {
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  REDECODE_CHECK_OP(items_.size(), <, size_t{UINT32_MAX});
  queues_[stream].items.push_back(static_cast<uint32_t>(items_.size()));
  ++pending_;
  Item& item = items_.emplace_back();
  item.kind = kind;
  item.stream = stream;
  item.submission = submission_;
  return item;
}

// After an append: an item that came to an empty stream is at its head.
void StreamQueues::settle_first(StreamId stream) {
  const Queue& queue = queues_[stream];
  if (queue.items.size() - queue.head == 1) settle(1u << stream);
}

// Brings the heads of these streams, and of all that they wake, to rest.
void StreamQueues::settle(uint32_t streams) {
  while (streams != 0) {
    const auto stream = static_cast<StreamId>(std::countr_zero(streams));
    streams &= streams - 1;
    streams |= settle_stream(stream);
  }
}

// Retires what can retire at the head of a stream; returns the streams whose waits that ended.
uint32_t StreamQueues::settle_stream(StreamId stream) {
  Queue& queue = queues_[stream];
  uint32_t woken = 0;
  while (!queue.empty()) {
    const uint32_t index = queue.items[queue.head];
    const Item& item = items_[index];
    switch (item.kind) {
      case ItemKind::op:
        if (item.ran) break;
        if (!item.offered) add_ready(candidate(index, 0));
        if (any_prologues_) offer_prologues(stream);
        return woken;
      case ItemKind::graph:
        if (start_graph(index)) return woken;
        break;
      case ItemKind::record: {
        Token& token = tokens_[item.token];
        token.done = true;
        woken |= token.waiting_streams;
        token.waiting_streams = 0;
        break;
      }
      case ItemKind::wait: {
        Token& token = tokens_[item.token];
        if (!token.done) {
          token.waiting_streams |= 1u << stream;
          return woken;
        }
        break;
      }
      case ItemKind::poison:
        std::memset(item.address, kPoisonByte, item.size_bytes);
        break;
    }
    pop(stream);
  }
  return woken;
}

// Behind a kernel at the head: what may start before it ends.
void StreamQueues::offer_prologues(StreamId stream) {
  const Queue& queue = queues_[stream];
  if (queue.empty()) return;
  const Item& head = items_[queue.items[queue.head]];
  if (head.kind != ItemKind::op || head.op.kind != CommandKind::launch) return;
  for (size_t at = queue.head + 1; at < queue.items.size(); ++at) {
    const uint32_t index = queue.items[at];
    Item& item = items_[index];
    if (item.kind == ItemKind::record) continue;
    if (item.kind == ItemKind::wait && tokens_[item.token].done) continue;
    if (item.kind != ItemKind::op || !item.before_wait) return;
    if (!item.offered) add_ready(candidate(index, 0));
    item.offered = true;
  }
}

void StreamQueues::pop(StreamId stream) {
  Queue& queue = queues_[stream];
  ++queue.head;
  --pending_;
  if (queue.empty()) {
    queue.items.clear();
    queue.head = 0;
  }
}

// Returns false when the graph has no nodes.
bool StreamQueues::start_graph(uint32_t item) {
  const SimGraph& graph = *items_[item].graph;
  Running& running = running_[items_[item].stream];
  running.nodes_left = static_cast<uint32_t>(graph.nodes.size());
  running.blockers.assign(graph.predecessor_counts.begin(), graph.predecessor_counts.end());
  for (uint32_t node = 0; node < running.nodes_left; ++node) {
    if (running.blockers[node] == 0) add_ready(candidate(item, node));
  }
  return running.nodes_left != 0;
}

void StreamQueues::finish_node(uint32_t item, uint32_t node) {
  const SimGraph& graph = *items_[item].graph;
  const StreamId stream = items_[item].stream;
  Running& running = running_[stream];
  for (uint32_t e = graph.first_successor[node]; e < graph.first_successor[node + 1]; ++e) {
    const uint32_t after = graph.successors[e];
    if (--running.blockers[after] == 0) add_ready(candidate(item, after));
  }
  if (--running.nodes_left != 0) return;
  pop(stream);
  settle(1u << stream);
}

void StreamQueues::add_ready(Candidate candidate) {
  if (ready_.empty() || ready_.back() < candidate) {
    ready_.push_back(candidate);
  } else {
    ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), candidate), candidate);
  }
}

uint32_t StreamQueues::choose(Order& order) {
  if (!order.sees_ops())
    return ready_.size() > 1 ? order.choose(static_cast<uint32_t>(ready_.size())) : 0;
  shown_.clear();
  for (const Candidate at : ready_) {
    const Item& item = items_[at >> 32];
    if (item.kind == ItemKind::graph) {
      const auto node = static_cast<uint32_t>(at);
      const uint32_t command = item.graph->nodes[node].command;
      shown_.push_back({item.submission, command, item.graph->program.commands[command].stream});
    } else {
      shown_.push_back({item.submission, item.op.command, item.stream});
    }
  }
  return order.choose_among(shown_);
}

void StreamQueues::run_one(Order& order, Observer* observer) {
  REDECODE_CHECK(!ready_.empty());
  const uint32_t pick = choose(order);
  REDECODE_CHECK_OP(size_t{pick}, <, ready_.size());
  const Candidate picked = ready_[pick];
  ready_.erase(ready_.begin() + pick);
  const auto index = static_cast<uint32_t>(picked >> 32);
  const Item& item = items_[index];
  if (item.kind == ItemKind::graph) {
    const auto node = static_cast<uint32_t>(picked);
    const Op& op = item.graph->nodes[node];
    item.graph->arena.run(op, exec_);
    show(item.audience, observer, op.command);
    finish_node(index, node);
  } else {
    arena_.run(item.op, exec_);
    show(item.audience, observer, item.op.command);
    const StreamId stream = item.stream;
    const Queue& queue = queues_[stream];
    if (queue.items[queue.head] != index) {
      items_[index].ran = true;
      return;
    }
    pop(stream);
    settle(1u << stream);
  }
}

void StreamQueues::run_ready(Order& order) {
  while (!ready_.empty()) run_one(order, nullptr);
}

void StreamQueues::run_stream(StreamId stream, Order& order) {
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  while (!queues_[stream].empty()) run_one(order, nullptr);
}

void StreamQueues::run_all(Order& order, Observer* observer) {
  while (!ready_.empty()) run_one(order, observer);
  REDECODE_CHECK(idle());
}

}  // namespace redecode
