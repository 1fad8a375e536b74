#include "engine/plan/op_graph.h"

#include <algorithm>
#include <array>

#include "traces/check.h"

namespace redecode {
namespace {

// The latest nodes, one a lane at most, that whatever comes next must follow.
class Frontier {
 public:
  void join(const Frontier& other, const std::vector<uint16_t>& lanes) {
    for (const uint32_t node : other.nodes_) add(node, lanes);
  }
  void replace(uint32_t node) { nodes_.assign(1, node); }
  void add(uint32_t node, const std::vector<uint16_t>& lanes) {
    for (uint32_t& mine : nodes_) {
      if (lanes[mine] != lanes[node]) continue;
      mine = std::max(mine, node);
      return;
    }
    nodes_.push_back(node);
  }
  const std::vector<uint32_t>& nodes() const { return nodes_; }

 private:
  std::vector<uint32_t> nodes_;
};

struct Actor {
  Frontier next;   // what its next act follows
  Frontier start;  // what its latest kernel followed, and edges taken since
  // Lanes of prologues: those since the latest kernel, and those that it followed.
  std::vector<uint16_t> open_lanes, free_lanes;
};

class Builder {
 public:
  Builder(const Program& program, Submission submission)
      : program_(program), graph_mode_(submission == Submission::graph) {
    events_.resize(program.event_count);
    recorded_.resize(program.event_count);
    out_.node_of.assign(program.commands.size(), OpGraph::kNoNode);
    out_.first_pred.push_back(0);
    out_.lane_count = kMaxStreams + 1;
  }

  OpGraph run() {
    for (uint32_t i = 0; i < program_.commands.size(); ++i) command(i);
    compress_lanes();
    invert();
    return std::move(out_);
  }

 private:
  Actor& issue(StreamId stream) {
    if (stream == kHost) return host_;
    REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
    Actor& actor = streams_[stream];
    if (graph_mode_) {
      if (!launched_) launch_ = host_.next;
      launched_ = true;
      actor.next.join(launch_, out_.lanes);
      actor.start.join(launch_, out_.lanes);
    } else if (!program_.is_outside(stream)) {
      actor.next.join(host_.next, out_.lanes);
      actor.start.join(host_.next, out_.lanes);
    }
    return actor;
  }

  void command(uint32_t index) {
    const Command& c = program_.commands[index];
    switch (c.kind) {
      case CommandKind::launch:
      case CommandKind::copy:
      case CommandKind::fill:
        return op(index, c.stream);
      case CommandKind::host:
        return op(index, kHost);
      case CommandKind::record:
        events_[c.event] = issue(c.stream).next;
        recorded_[c.event] = true;
        return;
      case CommandKind::wait: {
        Actor& actor = issue(c.stream);
        if (!recorded_[c.event]) return;
        actor.next.join(events_[c.event], out_.lanes);
        actor.start.join(events_[c.event], out_.lanes);
        return;
      }
      case CommandKind::sync:
        if (c.stream == kHost) return;
        host_.next.join(streams_[c.stream].next, out_.lanes);
        if (graph_mode_ && launched_ && c.stream == 0)
          for (const Actor& actor : streams_) host_.next.join(actor.next, out_.lanes);
        return;
      default:
        return;
    }
  }

  void op(uint32_t index, StreamId stream) {
    const Command& c = program_.commands[index];
    Actor& actor = issue(stream);
    const bool prologue = c.kind == CommandKind::launch && c.before_wait;
    const uint32_t node = out_.size();
    for (const uint32_t pred : (prologue ? actor.start : actor.next).nodes()) {
      out_.preds.push_back(pred);
    }
    std::sort(out_.preds.begin() + out_.first_pred.back(), out_.preds.end());
    out_.first_pred.push_back(static_cast<uint32_t>(out_.preds.size()));
    out_.commands.push_back(index);
    out_.node_of[index] = node;
    if (prologue) {
      out_.lanes.push_back(prologue_lane(actor));
      actor.next.add(node, out_.lanes);
      return;
    }
    out_.lanes.push_back(stream == kHost ? uint16_t{kMaxStreams} : uint16_t{stream});
    if (c.kind == CommandKind::launch) actor.start = actor.next;
    actor.free_lanes.insert(actor.free_lanes.end(), actor.open_lanes.begin(),
                            actor.open_lanes.end());
    actor.open_lanes.clear();
    actor.next.replace(node);
    if (c.kind != CommandKind::launch) actor.start = actor.next;
  }

  // Not the stream's lane: nothing orders a prologue with the kernel before it.
  uint16_t prologue_lane(Actor& actor) {
    uint16_t lane = 0;
    if (actor.free_lanes.empty()) {
      REDECODE_CHECK_OP(out_.lane_count, <, uint32_t{UINT16_MAX});
      lane = static_cast<uint16_t>(out_.lane_count++);
    } else {
      lane = actor.free_lanes.back();
      actor.free_lanes.pop_back();
    }
    actor.open_lanes.push_back(lane);
    return lane;
  }

  void compress_lanes() {
    std::vector<uint16_t> packed(out_.lane_count, UINT16_MAX);
    uint16_t count = 0;
    for (uint16_t& lane : out_.lanes) {
      if (packed[lane] == UINT16_MAX) packed[lane] = count++;
      lane = packed[lane];
    }
    out_.lane_count = count;
  }

  void invert() {
    out_.first_succ.assign(out_.size() + size_t{1}, 0);
    for (const uint32_t pred : out_.preds) ++out_.first_succ[pred + 1];
    for (uint32_t i = 0; i < out_.size(); ++i) out_.first_succ[i + 1] += out_.first_succ[i];
    out_.succs.resize(out_.preds.size());
    std::vector<uint32_t> cursor(out_.first_succ.begin(), out_.first_succ.end() - 1);
    for (uint32_t node = 0; node < out_.size(); ++node)
      for (const uint32_t pred : out_.preds_of(node)) out_.succs[cursor[pred]++] = node;
  }

  const Program& program_;
  bool graph_mode_;
  bool launched_ = false;
  OpGraph out_;
  Actor host_;
  Frontier launch_;
  std::array<Actor, kMaxStreams> streams_;
  std::vector<Frontier> events_;
  std::vector<bool> recorded_;
};

}  // namespace

OpGraph op_graph(const Program& program, Submission submission) {
  return Builder(program, submission).run();
}

}  // namespace redecode
