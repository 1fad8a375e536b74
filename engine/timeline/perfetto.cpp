#include "engine/timeline/perfetto.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "traces/convert/perfetto_proto.h"

namespace redecode {
namespace {

constexpr uint64_t kFirstStream = 1, kHostTrack = 100, kFindings = 200, kPoolBytes = 201;

uint64_t nanoseconds(double us) { return static_cast<uint64_t>(std::llround(us * 1e3)); }

uint64_t track_of(const Command& c) {
  return c.kind == CommandKind::host ? kHostTrack : kFirstStream + c.stream;
}

// A moment of the picture; ends come before beginnings, and marks last.
struct Mark {
  enum class Kind : uint8_t { end, begin, count, finding };
  uint64_t time_ns = 0;
  Kind kind = Kind::end;
  uint32_t node = 0;   // begin, end
  uint64_t value = 0;  // count: bytes; finding: its index
};

class Timeline {
 public:
  Timeline(const TimelineInput& in, ByteSink& out) : in_(in), out_(out, 1) {}

  uint64_t run() {
    name_tracks();
    collect_ops();
    collect_pool();
    collect_findings();
    std::ranges::stable_sort(marks_, [](const Mark& a, const Mark& b) {
      return std::pair(a.time_ns, a.kind) < std::pair(b.time_ns, b.kind);
    });
    for (const Mark& mark : marks_) draw(mark);
    return out_.events();
  }

 private:
  const Command& command(uint32_t node) const {
    return in_.program.commands[in_.graph.commands[node]];
  }
  std::string name_of(const Command& c) const { return std::string((*in_.program.names)[c.name]); }

  void name_tracks() {
    for (uint32_t s = 0; s < in_.program.stream_count; ++s)
      out_.track(kFirstStream + s, "stream " + std::to_string(s));
    out_.track(kHostTrack, "host");
    out_.track(kFindings, "findings");
    out_.counter_track(kPoolBytes, "transient bytes");
  }

  void collect_ops() {
    for (uint32_t node = 0; node < in_.graph.size(); ++node) {
      const uint64_t begin = nanoseconds(in_.run.ops[node].start_us);
      const uint64_t end = std::max(begin + 1, nanoseconds(in_.run.ops[node].end_us));
      marks_.push_back({begin, Mark::Kind::begin, node, 0});
      marks_.push_back({end, Mark::Kind::end, node, 0});
    }
  }

  // Allocation is host time: it is drawn where the next op begins.
  void collect_pool() {
    uint64_t bytes = 0, time_ns = 0;
    for (uint32_t i = 0; i < in_.program.commands.size(); ++i) {
      const Command& c = in_.program.commands[i];
      const uint32_t node = in_.graph.node_of[i];
      if (node != OpGraph::kNoNode) time_ns = nanoseconds(in_.run.ops[node].start_us);
      if ((c.kind != CommandKind::allocate && c.kind != CommandKind::free) ||
          c.buffer.is_persistent())
        continue;
      const uint64_t size = in_.program.size_of(c.buffer);
      bytes = c.kind == CommandKind::allocate ? bytes + size : bytes - std::min(bytes, size);
      marks_.push_back({time_ns, Mark::Kind::count, 0, bytes});
    }
  }

  void collect_findings() {
    for (size_t i = 0; i < in_.findings.size(); ++i) {
      const Finding& f = in_.findings[i];
      const FindingSide& side = f.second.op.empty() ? f.first : f.second;
      if (f.step != in_.step || side.command >= in_.graph.node_of.size()) continue;
      const uint32_t node = in_.graph.node_of[side.command];
      if (node == OpGraph::kNoNode) continue;
      marks_.push_back({nanoseconds(in_.run.ops[node].start_us), Mark::Kind::finding, node, i});
    }
  }

  void draw(const Mark& mark) {
    switch (mark.kind) {
      case Mark::Kind::begin:
        return draw_op(mark);
      case Mark::Kind::end:
        return out_.end(track_of(command(mark.node)), mark.time_ns);
      case Mark::Kind::count:
        return out_.count(kPoolBytes, mark.time_ns, mark.value);
      case Mark::Kind::finding: {
        const Finding& f = in_.findings[mark.value];
        PerfettoArguments arguments;
        arguments.add("sentence", sentence(f)).add("check", check_of(f));
        return out_.instant(kFindings, mark.time_ns, std::string(to_text(f.kind)), arguments);
      }
    }
  }

  // An edge is a flow of its own, named by its place in the list of successors.
  void draw_op(const Mark& mark) {
    const Command& c = command(mark.node);
    const OpCost cost = op_cost(in_.program, c);
    PerfettoArguments arguments;
    arguments.add("layer", c.layer).add("command", in_.graph.commands[mark.node]);
    arguments.add("bytes_read", cost.bytes_read).add("bytes_written", cost.bytes_written);
    for (const uint32_t pred : in_.graph.preds_of(mark.node))
      if (crosses(pred, mark.node)) arguments.flow(flow_of(pred, mark.node));
    for (const uint32_t succ : in_.graph.succs_of(mark.node))
      if (crosses(mark.node, succ)) arguments.flow(flow_of(mark.node, succ));
    out_.begin(track_of(c), mark.time_ns, name_of(c), arguments);
  }

  bool crosses(uint32_t a, uint32_t b) const {
    return track_of(command(a)) != track_of(command(b));
  }
  static uint64_t flow_of(uint32_t a, uint32_t b) { return (uint64_t{a} + 1) << 32 | b; }

  const TimelineInput& in_;
  PerfettoWriter out_;
  std::vector<Mark> marks_;
};

}  // namespace

uint64_t write_timeline(const TimelineInput& input, ByteSink& out) {
  return Timeline(input, out).run();
}

}  // namespace redecode
