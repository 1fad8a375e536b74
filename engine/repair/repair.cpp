#include "engine/repair/repair.h"

#include <algorithm>
#include <limits>
#include <set>

#include "engine/repair/edges.h"
#include "traces/check.h"

namespace redecode {
namespace {

StreamId actor_of(const Command& c) { return c.kind == CommandKind::host ? kHost : c.stream; }

std::string actor_text(StreamId actor) {
  return actor == kHost ? "the host" : "stream " + std::to_string(actor);
}

std::string op_text(const Program& program, uint32_t command) {
  const Command& c = program.commands[command];
  std::string out = "`" + std::string((*program.names)[c.name]) + "`";
  if (c.layer != 0) out += " of layer " + std::to_string(c.layer);
  return out;
}

std::vector<Finding> findings_of(const Program& program, const ExtentTable& extents,
                                 Submission submission) {
  std::vector<Finding> out;
  HazardChecker checker(RacePairs::all);
  checker.add(0, program, extents, submission, out);
  return out;
}

bool is_same_race(const Finding& f, const Finding& race) {
  return f.kind == FindingKind::race && f.first.op == race.first.op &&
         f.second.op == race.second.op && f.first.layer == race.first.layer &&
         f.second.layer == race.second.layer && f.first.buffer == race.first.buffer &&
         f.second.buffer == race.second.buffer;
}

class Options {
 public:
  Options(const Program& program, const ExtentTable& extents, Submission submission,
          std::span<const Finding> races)
      : program_(program), extents_(extents), submission_(submission), races_(races) {}

  std::vector<RepairOption> of(const Finding& race) {
    std::vector<RepairOption> out;
    const Command& second = program_.commands[race.second.command];
    const StreamId first_actor = actor_of(program_.commands[race.first.command]);
    const StreamId second_actor = actor_of(second);
    if (second.before_wait && first_actor == second_actor) {
      out.push_back(pdl_wait(race));
    } else {
      out.push_back(wait(race, first_actor, second_actor));
    }
    if (is_reuse(race)) {
      out.push_back(other_memory(race, RepairKind::record_stream));
      out.push_back(other_memory(race, RepairKind::keep_alive));
    }
    if (first_actor != kHost && second_actor != kHost && first_actor != second_actor)
      out.push_back(serialise(race, first_actor, second_actor));
    return out;
  }

 private:
  bool is_reuse(const Finding& race) const {
    return race.first.generation != 0 && race.second.generation != 0 &&
           race.first.generation != race.second.generation;
  }

  // The race is gone and no finding is there that was not there before.
  bool mends(const Program& program, const ExtentTable& extents, const Finding& race) const {
    const auto left = findings_of(program, extents, submission_);
    return left.size() <= baseline() &&
           std::ranges::none_of(left, [&](const Finding& f) { return is_same_race(f, race); });
  }
  size_t baseline() const {
    if (baseline_ == SIZE_MAX) baseline_ = findings_of(program_, extents_, submission_).size();
    return baseline_;
  }

  RepairOption wait(const Finding& race, StreamId first, StreamId second) const {
    RepairOption out;
    out.kind = second == kHost ? RepairKind::host_sync : RepairKind::wait;
    if (second == kHost)
      out.text = "sync " + actor_text(first) + " before the host does " +
                 op_text(program_, race.second.command);
    else
      out.text = "record an event on " + actor_text(first) + " after " +
                 op_text(program_, race.first.command) + ", wait for it on " + actor_text(second) +
                 " before " + op_text(program_, race.second.command);
    const RepairEdge edge{race.first.command, race.second.command, {}};
    out.verified = mends(with_edges(program_, {&edge, 1}), extents_, race);
    return out;
  }

  RepairOption pdl_wait(const Finding& race) const {
    RepairOption out;
    out.kind = RepairKind::pdl_wait;
    out.text = "let " + op_text(program_, race.second.command) +
               " wait for the kernel before it (griddepcontrol.wait) before it touches `" +
               race.second.buffer + "`";
    Program mended = program_;
    mended.commands[race.second.command].before_wait = false;
    out.verified = mends(mended, extents_, race);
    return out;
  }

  // Both ways keep the second buffer out of the first one's memory while it is in use.
  RepairOption other_memory(const Finding& race, RepairKind kind) const {
    RepairOption out;
    out.kind = kind;
    const std::string user = actor_text(actor_of(program_.commands[race.first.command]));
    out.text = kind == RepairKind::record_stream
                   ? "record_stream `" + race.first.buffer + "` on " + user +
                         ": its memory comes back once that use is done"
                   : "free `" + race.first.buffer + "` after its owner has joined " + user;
    ExtentTable apart = extents_;
    for (const Region& r : program_.operands_of(program_.commands[race.second.command]))
      move_away(r, race, apart);
    for (const Region& r : program_.touched_of(program_.commands[race.second.command]))
      move_away(r, race, apart);
    out.verified = mends(program_, apart, race);
    return out;
  }

  void move_away(const Region& r, const Finding& race, ExtentTable& extents) const {
    if (r.buffer.is_persistent() || program_.name_of(r.buffer) != race.second.buffer) return;
    constexpr uint64_t kFarAway = uint64_t{1} << 61;
    extents.transients[r.buffer.index()].begin = kFarAway;
  }

  RepairOption serialise(const Finding& race, StreamId first, StreamId second) const {
    RepairOption out;
    out.kind = RepairKind::serialise;
    const StreamId side = first == 0 ? second : first, main = first == 0 ? first : second;
    out.text = "run " + actor_text(side) + "'s ops on " + actor_text(main) +
               ": no overlap between the two is left";
    Program serial = program_;
    for (Command& c : serial.commands)
      if (c.kind != CommandKind::host && c.stream == side) c.stream = main;
    out.verified = mends(serial, extents_, race);
    return out;
  }

  const Program& program_;
  const ExtentTable& extents_;
  Submission submission_;
  std::span<const Finding> races_;
  mutable size_t baseline_ = SIZE_MAX;
};

std::vector<uint32_t> needless_waits(const Program& program, const ExtentTable& extents,
                                     Submission submission, uint32_t most_checks) {
  std::vector<uint32_t> out;
  const size_t baseline = findings_of(program, extents, submission).size();
  uint32_t checks = 0;
  for (uint32_t i = 0; i < program.commands.size() && checks < most_checks; ++i) {
    if (program.commands[i].kind != CommandKind::wait) continue;
    ++checks;
    Program without = program;
    without.commands.erase(without.commands.begin() + i);
    if (findings_of(without, extents, submission).size() == baseline) out.push_back(i);
  }
  return out;
}

}  // namespace

std::string_view to_text(RepairKind kind) {
  switch (kind) {
    case RepairKind::wait:
      return "wait";
    case RepairKind::host_sync:
      return "host-sync";
    case RepairKind::record_stream:
      return "record-stream";
    case RepairKind::keep_alive:
      return "keep-alive";
    case RepairKind::serialise:
      return "serialise";
    case RepairKind::pdl_wait:
      return "pdl-wait";
  }
  return "?";
}

std::vector<Finding> races_of(const Program& program, const ExtentTable& extents,
                              Submission submission) {
  std::vector<Finding> out = findings_of(program, extents, submission);
  std::erase_if(out, [](const Finding& f) { return f.kind != FindingKind::race; });
  return out;
}

Program with_edges(const Program& program, std::span<const RepairEdge> edges) {
  Program out = program;
  out.commands.clear();
  std::vector<EventId> event_of(edges.size());
  REDECODE_CHECK_OP(program.event_count + edges.size(), <=,
                    size_t{std::numeric_limits<EventId>::max()});
  for (size_t i = 0; i < edges.size(); ++i)
    event_of[i] = static_cast<EventId>(program.event_count + i);
  out.event_count = program.event_count + static_cast<uint32_t>(edges.size());
  for (uint32_t at = 0; at < program.commands.size(); ++at) {
    const Command& c = program.commands[at];
    for (size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].before != at) continue;
      const StreamId from = actor_of(program.commands[edges[i].after]);
      Command wait;
      wait.kind = CommandKind::wait;
      wait.stream = actor_of(c);
      wait.event = event_of[i];
      wait.name = c.name;
      if (wait.stream == kHost && from != kHost) {
        wait.kind = CommandKind::sync;
        wait.stream = from;
      }
      out.commands.push_back(wait);
    }
    out.commands.push_back(c);
    for (size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].after != at) continue;
      Command record;
      record.kind = CommandKind::record;
      record.stream = actor_of(c);
      record.event = event_of[i];
      record.name = c.name;
      out.commands.push_back(record);
    }
  }
  return out;
}

Repair repair(const Program& program, const ExtentTable& extents, Submission submission,
              std::span<const Finding> races, const RepairOptions& options) {
  Repair out;
  const OpGraph graph = op_graph(program, submission);
  std::vector<RacePair> pairs;
  std::vector<size_t> race_of_pair;
  Options choices(program, extents, submission, races);
  for (size_t i = 0; i < races.size(); ++i) {
    const uint32_t a = races[i].first.command, b = races[i].second.command;
    out.options.push_back(choices.of(races[i]));
    // A prologue can follow the kernel before it on its own stream only by waiting itself.
    const bool prologue = program.commands[b].before_wait &&
                          actor_of(program.commands[a]) == actor_of(program.commands[b]);
    if (prologue) continue;
    pairs.push_back({std::min(a, b), std::max(a, b)});
    race_of_pair.push_back(i);
  }
  out.edges = fewest_edges(program, graph, pairs);
  for (RepairEdge& edge : out.edges)
    for (size_t& covered : edge.covers) covered = race_of_pair[covered];
  if (options.find_needless_waits)
    out.needless_waits = needless_waits(program, extents, submission, options.most_needless_checks);
  return out;
}

std::string patch_text(const Program& program, std::span<const RepairEdge> edges) {
  std::string out;
  for (const RepairEdge& edge : edges) {
    const StreamId from = actor_of(program.commands[edge.after]);
    const StreamId to = actor_of(program.commands[edge.before]);
    if (to == kHost) {
      out += "+ before " + op_text(program, edge.before) + ": sync " + actor_text(from) + '\n';
      continue;
    }
    out += "+ after " + op_text(program, edge.after) + ": record an event on " + actor_text(from) +
           "\n+ before " + op_text(program, edge.before) + ": wait for it on " + actor_text(to) +
           '\n';
  }
  return out;
}

}  // namespace redecode
