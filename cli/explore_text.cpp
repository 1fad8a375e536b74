#include "cli/explore_text.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/output.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

std::string share_text(const SearchCount& c, const std::string& what) {
  if (c.tried == 0) return {};
  std::string out = with_thousands(c.wrong) + " of " + with_thousands(c.tried) + ' ' + what;
  if (c.wrong != 0 && c.tried > 1)
    out += " (the first: order " + with_thousands(c.first_wrong) + ")";
  return out;
}

void add_part(std::string& out, const std::string& part) {
  if (part.empty()) return;
  if (!out.empty()) out += ", ";
  out += part;
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

void count_json(const char* key, const SearchCount& c, JsonWriter& json) {
  json.key(key).begin_object();
  json.member("tried", c.tried).member("wrong", c.wrong).member("first_wrong", c.first_wrong);
  json.member("outcomes", c.outcomes).end_object();
}

using Group = std::tuple<std::string, std::string, std::string, std::string>;
Group group_of(const Finding& f) {
  return {f.first.op, f.second.op, f.first.buffer, f.second.buffer};
}

constexpr size_t kMostGroups = 3;

}  // namespace

std::string searches_text(const Exploration& e) {
  std::string out;
  add_part(out, share_text(e.guided, "guided"));
  add_part(out, share_text(e.tiles, "by tiles"));
  add_part(out, share_text(e.random, "random"));
  if (e.pct.tried != 0)
    add_part(out, share_text(e.pct, "pct") + ", each at least " + scientific(e.pct_bound) +
                      " by its bound");
  if (e.exhaustive.orders != 0)
    add_part(out, with_thousands(e.exhaustive_count.wrong) + " of " +
                      with_thousands(e.exhaustive.orders) + " classes");
  return out.empty() ? "none" : out;
}

void searches_json(const Exploration& e, JsonWriter& json) {
  json.key("searches").begin_object();
  count_json("guided", e.guided, json);
  count_json("tiles", e.tiles, json);
  count_json("random", e.random, json);
  count_json("pct", e.pct, json);
  json.member("pct_bound", e.pct_bound);
  count_json("exhaustive", e.exhaustive_count, json);
  json.member("exhaustive_complete", e.exhaustive.complete).end_object();
}

std::string repair_text(const Program& program, std::span<const Finding> races, const Repair& r) {
  if (races.empty()) return {};
  std::string out = labelled("smallest fix", with_thousands(r.edges.size()) +
                                                 (r.edges.size() == 1 ? " edge" : " edges") +
                                                 " for " + with_thousands(races.size()) +
                                                 (races.size() == 1 ? " race" : " races"));
  constexpr size_t kMostEdges = 12;
  const auto shown = std::min(r.edges.size(), kMostEdges);
  std::string patch = patch_text(program, std::span(r.edges).first(shown));
  for (size_t at = 0; at < patch.size();) {
    const size_t end = patch.find('\n', at);
    out += "  " + patch.substr(at, end + 1 - at);
    at = end + 1;
  }
  if (shown < r.edges.size())
    out += "  and " + with_thousands(r.edges.size() - shown) + " more of the same kind\n";
  std::map<Group, std::pair<size_t, size_t>> groups;  // first race, number
  std::vector<size_t> order;
  for (size_t i = 0; i < races.size(); ++i) {
    auto [at, fresh] = groups.try_emplace(group_of(races[i]), i, 0);
    ++at->second.second;
    if (fresh) order.push_back(i);
  }
  if (order.size() > kMostGroups) order.resize(kMostGroups);
  for (const size_t i : order) {
    const size_t number = groups.at(group_of(races[i])).second;
    out += "ways to order `" + races[i].first.op + "` and `" + races[i].second.op + "`" +
           (number > 1 ? " (" + with_thousands(number) + " times)" : "") + ":\n";
    for (const RepairOption& option : r.options[i]) {
      std::string name(to_text(option.kind));
      name.resize(std::max<size_t>(name.size(), 14), ' ');
      out +=
          "  " + name + option.text + (option.verified ? "" : " (does not mend it alone)") + '\n';
    }
  }
  if (!r.needless_waits.empty())
    out += labelled("needless", with_thousands(r.needless_waits.size()) +
                                    (r.needless_waits.size() == 1
                                         ? " wait can go without a new finding"
                                         : " waits can each go alone without a new finding"));
  return out;
}

void repair_json(const Program& program, std::span<const Finding> races, const Repair& r,
                 JsonWriter& json) {
  json.key("repair").begin_object().key("edges").begin_array();
  for (const RepairEdge& e : r.edges) {
    json.begin_object();
    json.member("after", to_text(anchor_of(program, e.after)));
    json.member("before", to_text(anchor_of(program, e.before)));
    json.member("races", e.covers.size()).end_object();
  }
  json.end_array().member("patch", patch_text(program, r.edges));
  json.key("options").begin_array();
  for (size_t i = 0; i < races.size(); ++i) {
    json.begin_object().member("first", races[i].first.op).member("second", races[i].second.op);
    json.key("ways").begin_array();
    for (const RepairOption& option : r.options[i])
      json.begin_object()
          .member("kind", to_text(option.kind))
          .member("text", option.text)
          .member("verified", option.verified)
          .end_object();
    json.end_array().end_object();
  }
  json.end_array().member("needless_waits", r.needless_waits.size()).end_object();
}

}  // namespace redecode
