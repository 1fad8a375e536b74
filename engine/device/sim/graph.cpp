// engine/device/sim/graph.cpp - capture: from a program to nodes and edges.
#include "engine/device/sim/graph.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "traces/check.h"

namespace redecode {
namespace {

using NodeSet = std::vector<uint32_t>;  // ascending, each node once

void add_all(NodeSet& set, const NodeSet& more) {
  NodeSet merged;
  merged.reserve(set.size() + more.size());
  std::set_union(set.begin(), set.end(), more.begin(), more.end(), std::back_inserter(merged));
  set = std::move(merged);
}

class Capture {
 public:
  Capture(const KernelTable& kernels, const Program& program, const Bindings& bindings,
          SimGraph& graph)
      : kernels_(kernels), program_(program), bindings_(bindings), graph_(graph) {
    events_.resize(program.event_count);
    streams_[0].joined = true;
  }

  CaptureResult run() {
    for (uint32_t i = 0; i < program_.commands.size(); ++i) {
      CaptureResult result = add(i);
      if (result.status != CaptureStatus::ok) return result;
    }
    CaptureResult result = check_joined();
    if (result.status == CaptureStatus::ok) store_edges();
    return result;
  }

 private:
  struct Stream {
    bool joined = false;
    NodeSet tail;   // what the next node of the stream depends on
    NodeSet start;  // what its latest kernel depends on, and waits since: all that a prologue needs
  };
  struct Event {
    bool recorded = false, captured = false;
    NodeSet tail;
  };

  CaptureResult add(uint32_t index) {
    const Command& c = program_.commands[index];
    switch (c.kind) {
      case CommandKind::launch:
      case CommandKind::copy:
      case CommandKind::fill:
        return add_node(index);
      case CommandKind::record: {
        const Stream& stream = stream_of(c);
        event_of(c) = {true, stream.joined, stream.tail};
        return {};
      }
      case CommandKind::wait:
        return add_wait(index);
      case CommandKind::host:
        return broken(CaptureStatus::unsupported, index,
                      "the host cannot act on memory inside a capture");
      case CommandKind::sync:
        return broken(CaptureStatus::unsupported, index, "a capture cannot be synchronised");
      case CommandKind::allocate:
      case CommandKind::free:
      case CommandKind::record_stream:
        return {};
    }
    REDECODE_CHECK(false);
    return {};
  }

  CaptureResult add_node(uint32_t index) {
    const Command& c = program_.commands[index];
    Stream& stream = stream_of(c);
    if (!stream.joined) {
      return broken(
          CaptureStatus::implicit, index,
          "the stream has not joined the capture: it must first wait on an event that was "
          "recorded in it");
    }
    const auto node = static_cast<uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back(graph_.arena.resolve(kernels_, program_, bindings_, index));
    if (c.kind == CommandKind::launch && c.before_wait) {
      predecessors_.push_back(stream.start);
      stream.tail.push_back(node);
      return {};
    }
    predecessors_.push_back(stream.tail);
    if (c.kind == CommandKind::launch) {
      stream.start = std::move(stream.tail);
      stream.tail = {node};
    } else {
      stream.start = stream.tail = {node};
    }
    return {};
  }

  CaptureResult add_wait(uint32_t index) {
    const Command& c = program_.commands[index];
    const Event& event = event_of(c);
    Stream& stream = stream_of(c);
    if (!event.recorded) return {};
    if (event.captured) {
      stream.joined = true;
      add_all(stream.tail, event.tail);
      add_all(stream.start, event.tail);
    } else if (stream.joined) {
      return broken(
          CaptureStatus::isolation, index,
          "event " + std::to_string(c.event) + " was recorded on a stream outside the capture");
    }
    return {};
  }

  CaptureResult check_joined() const {
    std::vector<uint8_t> reached(graph_.nodes.size(), 0);
    for (const uint32_t node : streams_[0].tail) reached[node] = 1;
    for (size_t node = reached.size(); node-- > 0;) {
      if (reached[node] == 0) continue;
      for (const uint32_t before : predecessors_[node]) reached[before] = 1;
    }
    for (uint32_t s = 1; s < kMaxStreams; ++s) {
      for (size_t node = reached.size(); node-- > 0;) {
        const uint32_t index = graph_.nodes[node].command;
        if (program_.commands[index].stream != s) continue;
        if (reached[node] == 0) {
          return broken(CaptureStatus::unjoined, index,
                        "the stream was not joined back into stream 0 after this, its last op");
        }
        break;
      }
    }
    return {};
  }

  void store_edges() {
    const size_t count = graph_.nodes.size();
    graph_.predecessor_counts.resize(count);
    graph_.first_successor.assign(count + 1, 0);
    for (size_t node = 0; node < count; ++node) {
      graph_.predecessor_counts[node] = static_cast<uint32_t>(predecessors_[node].size());
      for (const uint32_t before : predecessors_[node]) ++graph_.first_successor[before + 1];
    }
    for (size_t node = 0; node < count; ++node) {
      graph_.first_successor[node + 1] += graph_.first_successor[node];
    }
    graph_.successors.resize(graph_.first_successor[count]);
    std::vector<uint32_t> next(graph_.first_successor.begin(), graph_.first_successor.end() - 1);
    for (uint32_t node = 0; node < count; ++node) {
      for (const uint32_t before : predecessors_[node]) graph_.successors[next[before]++] = node;
    }
  }

  CaptureResult broken(CaptureStatus status, uint32_t index, const std::string& why) const {
    const Command& c = program_.commands[index];
    std::string message(capture_error_name(status));
    message += ": command " + std::to_string(index) + ", " + std::string(to_text(c.kind));
    if (program_.names && c.name < program_.names->names.size()) {
      message += " " + std::string((*program_.names)[c.name]);
    }
    if (c.stream != kHost) message += " on stream " + std::to_string(c.stream);
    return {status, 0, index, message + ": " + why};
  }

  Stream& stream_of(const Command& c) {
    REDECODE_CHECK_OP(uint32_t{c.stream}, <, kMaxStreams);
    return streams_[c.stream];
  }
  Event& event_of(const Command& c) {
    REDECODE_CHECK_OP(size_t{c.event}, <, events_.size());
    return events_[c.event];
  }

  const KernelTable& kernels_;
  const Program& program_;
  const Bindings& bindings_;
  SimGraph& graph_;
  std::array<Stream, kMaxStreams> streams_;
  std::vector<Event> events_;
  std::vector<NodeSet> predecessors_;  // by node
};

}  // namespace

CaptureResult capture_graph(const KernelTable& kernels, const Program& program,
                            const Bindings& bindings, SimGraph& out) {
  CaptureResult result = Capture(kernels, program, bindings, out).run();
  if (result.status == CaptureStatus::ok) {
    out.program = program;
    out.bindings = bindings;
  }
  return result;
}

}  // namespace redecode
