#include "engine/plan/findings_of.h"

#include <algorithm>
#include <tuple>

namespace redecode {
namespace {

std::string quoted(const std::string& name) { return '`' + name + '`'; }

std::string actor(const Touch& touch) {
  return touch.stream == kHost ? "host" : "stream " + std::to_string(touch.stream);
}

bool is_node(const Touch& touch) { return is_node_actor(touch.epoch.actor); }

// Two transients on the same bytes: the first one's block was freed before the second was
// allocated.
bool block_reused(const Touch& first, const Touch& second) {
  return first.owner != second.owner && !is_persistent_owner(first.owner) &&
         !is_persistent_owner(second.owner);
}

std::string race_advice(const Touch& first, const Touch& second, const OwnNames& names) {
  const std::string op = quoted(names[first.op]);
  if (second.stream == kHost)
    return "Let the host wait for " + actor(first) + " before " + quoted(names[second.op]);
  if (first.stream == kHost) return "Let the host do " + op + " before the launch";
  std::string text;
  if (is_node(first) && !is_node(second)) {
    text = "Add a wait on " + actor(second) + " for an event recorded on stream 0 after the graph";
  } else if (!is_node(first) && is_node(second)) {
    text = "Add a wait on stream 0, before the launch, for an event recorded after " + op;
  } else {
    text = "Add a wait on " + actor(second) + " for an event recorded after " + op;
  }
  if (!block_reused(first, second)) return text;
  return text + ", or record_stream " + quoted(names[first.buffer]) + " on " + actor(first) +
         ", or free it after the join";
}

std::string missing_edge(const Touch& first, const Touch& second, const OwnNames& names) {
  return names[first.op] + " (" + actor(first) + ") -> " + names[second.op] + " (" + actor(second) +
         ")";
}

// Bytes in the union of [begin, end) of a span sorted by begin.
template <class It>
uint64_t union_bytes(It begin, It end) {
  uint64_t total = 0, covered_to = 0;
  for (auto it = begin; it != end; ++it) {
    const uint64_t from = std::max(it->begin, covered_to);
    if (it->end > from) total += it->end - from;
    covered_to = std::max(covered_to, it->end);
  }
  return total;
}

auto pair_key(const Conflict& c) { return std::tuple(c.first.step, c.first.command); }
auto buffers_key(const Conflict& c) { return std::tuple(c.first.owner, c.second.owner); }

template <class It, class Key>
It end_of_group(It begin, It end, Key key) {
  return std::find_if(begin, end, [&](const auto& c) { return key(c) != key(*begin); });
}

using ConflictIt = std::vector<Conflict>::iterator;

Finding race_of_pair(ConflictIt begin, ConflictIt end, const OwnNames& names) {
  std::stable_sort(begin, end, [](const Conflict& a, const Conflict& b) {
    return std::tuple(buffers_key(a), a.begin) < std::tuple(buffers_key(b), b.begin);
  });
  Conflict widest = *begin;
  uint64_t widest_bytes = 0;
  for (auto group = begin; group != end;) {
    const auto group_end = end_of_group(group, end, buffers_key);
    const uint64_t bytes = union_bytes(group, group_end);
    if (bytes > widest_bytes) {
      widest_bytes = bytes;
      widest = *group;
    }
    group = group_end;
  }
  std::stable_sort(begin, end,
                   [](const Conflict& a, const Conflict& b) { return a.begin < b.begin; });
  Finding f;
  f.kind = FindingKind::race;
  f.step = widest.second.step;
  f.request = widest.second.request;
  f.layer = widest.first.layer;
  f.first = side_of(widest.first, names);
  f.second = side_of(widest.second, names);
  f.offset_bytes = widest.begin - widest.first.buffer_begin;
  f.size_bytes = union_bytes(begin, end);
  f.missing_edge = missing_edge(widest.first, widest.second, names);
  f.advice = race_advice(widest.first, widest.second, names);
  return f;
}

auto content_key(const BadContent& b) {
  return std::tuple(b.reader.operand, b.has_writer, b.writer.step, b.writer.command,
                    b.writer.owner);
}

}  // namespace

bool same_content_finding(const BadContent& a, const BadContent& b) {
  return content_key(a) == content_key(b);
}

uint32_t OwnNames::id_of(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  ids_.emplace(text, id);
  return id;
}

FindingSide side_of(const Touch& touch, const OwnNames& names) {
  FindingSide side;
  side.op = names[touch.op];
  side.buffer = names[touch.buffer];
  side.layer = touch.layer;
  side.stream = touch.stream;
  side.command = touch.command;
  side.step = touch.step;
  side.access = touch.access;
  side.generation = touch.generation;
  side.version = touch.version;
  return side;
}

void append_races(std::vector<Conflict>& conflicts, const OwnNames& names,
                  std::vector<Finding>& out) {
  std::stable_sort(conflicts.begin(), conflicts.end(),
                   [](const Conflict& a, const Conflict& b) { return pair_key(a) < pair_key(b); });
  for (auto begin = conflicts.begin(); begin != conflicts.end();) {
    const auto end = end_of_group(begin, conflicts.end(), pair_key);
    out.push_back(race_of_pair(begin, end, names));
    begin = end;
  }
}

void append_bad_contents(std::vector<BadContent>& bad_contents, const OwnNames& names,
                         std::vector<Finding>& out) {
  std::stable_sort(
      bad_contents.begin(), bad_contents.end(), [](const BadContent& a, const BadContent& b) {
        return std::tuple(content_key(a), a.begin) < std::tuple(content_key(b), b.begin);
      });
  for (auto begin = bad_contents.begin(); begin != bad_contents.end();) {
    const auto end = end_of_group(begin, bad_contents.end(), content_key);
    const Touch& reader = begin->reader;
    const std::string op = quoted(names[reader.op]), buffer = quoted(names[reader.buffer]);
    Finding f;
    f.step = reader.step;
    f.size_bytes = union_bytes(begin, end);
    if (begin->has_writer) {
      f.kind = FindingKind::stale;
      f.first = side_of(begin->writer, names);
      f.second = side_of(reader, names);
      f.layer = begin->writer.layer;
      f.offset_bytes = begin->begin - std::min(begin->begin, begin->writer.buffer_begin);
      f.advice = "Write ";
      f.advice.append(buffer).append(" before ").append(op).append(" reads it");
      if (begin->writer.owner != reader.owner)
        f.advice.append(", or keep ").append(quoted(f.first.buffer)).append(" out of its memory");
      else if (!f.first.op.empty())
        f.advice.append(", or let ").append(op).append(" read before ").append(quoted(f.first.op));
    } else {
      f.kind = FindingKind::unwritten;
      f.first = side_of(reader, names);
      f.layer = reader.layer;
      f.offset_bytes = begin->begin - reader.buffer_begin;
      f.advice = "Write or fill these bytes of ";
      f.advice.append(buffer).append(" before ").append(op);
    }
    out.push_back(std::move(f));
    begin = end;
  }
}

Finding use_after_free(const Touch& touch, uint64_t offset_bytes, uint64_t size_bytes,
                       uint32_t freeing_command, const OwnNames& names) {
  Finding f;
  f.kind = FindingKind::use_after_free;
  f.step = touch.step;
  f.layer = touch.layer;
  f.first = side_of(touch, names);
  f.offset_bytes = offset_bytes;
  f.size_bytes = size_bytes;
  f.advice = "Command " + std::to_string(freeing_command) + " frees " +
             quoted(names[touch.buffer]) + ": free it after " + quoted(names[touch.op]);
  return f;
}

Finding leaves_buffer(const Touch& touch, uint64_t offset_bytes, uint64_t size_bytes,
                      uint64_t buffer_bytes, const OwnNames& names) {
  Finding f;
  f.kind = FindingKind::foreign;
  f.step = touch.step;
  f.request = touch.request;
  f.layer = touch.layer;
  f.first = side_of(touch, names);
  f.offset_bytes = std::max(offset_bytes, buffer_bytes);
  f.size_bytes = size_bytes - (f.offset_bytes - offset_bytes);
  f.advice = quoted(names[touch.op]) + " leaves its buffer: " + std::to_string(size_bytes) +
             " bytes at offset " + std::to_string(offset_bytes) + " of " +
             quoted(names[touch.buffer]) + ", which has " + std::to_string(buffer_bytes);
  return f;
}

}  // namespace redecode
