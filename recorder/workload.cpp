#include "recorder/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "recorder/workload_exchanges.h"
#include "traces/error.h"
#include "traces/samples.h"

namespace redecode {
namespace {

template <class Visit>
void visit_sampling(Sampling& s, const Visit& visit) {
  visit("temperature", s.temperature);
  visit("top_k", s.top_k);
  visit("top_p", s.top_p);
  visit("min_p", s.min_p);
}

template <class Visit>
void visit_fields(AgentOptions& o, const Visit& visit) {
  visit("sessions", o.sessions);
  visit("rounds", o.rounds);
  visit("ctx", o.context_tokens);
  visit("system_percent", o.system_percent);
  visit("new_min", o.new_tokens_min);
  visit("new_max", o.new_tokens_max);
  visit("max_tokens", o.max_tokens);
  visit("concurrency", o.concurrency);
  visit("think_min", o.think_steps_min);
  visit("think_max", o.think_steps_max);
  visit("vocab", o.vocab);
  visit("stop", o.stop_token);
  visit("seed", o.seed);
  visit_sampling(o.sampling, visit);
}

template <class Visit>
void visit_fields(ArrivalOptions& o, const Visit& visit) {
  visit("scale", o.scale);
  visit("step_us", o.step_us);
  visit("rows", o.rows);
  visit("prompt_cap", o.prompt_cap);
  visit("output_cap", o.output_cap);
  visit("vocab", o.vocab);
  visit("stop", o.stop_token);
  visit("seed", o.seed);
  visit_sampling(o.sampling, visit);
}

template <class Visit>
void visit_fields(WorkloadSpec& spec, const Visit& visit) {
  if (spec.kind == WorkloadKind::agent)
    visit_fields(spec.agent, visit);
  else
    visit_fields(spec.arrival, visit);
}

std::string_view kind_name(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::agent:
      return "agent";
    case WorkloadKind::mooncake:
      return "mooncake";
    case WorkloadKind::azure:
      return "azure";
    case WorkloadKind::requests:
      return "requests";
  }
  return "?";
}

WorkloadKind parse_kind(std::string_view word) {
  for (const auto kind :
       {WorkloadKind::agent, WorkloadKind::mooncake, WorkloadKind::azure, WorkloadKind::requests})
    if (word == kind_name(kind)) return kind;
  throw Error(ErrorCode::usage, "Unknown workload '" + std::string(word) +
                                    "'; there are agent, mooncake, azure and requests");
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(out);
  return true;
}

void set_field(WorkloadSpec& spec, std::string_view key, std::string_view value) {
  bool known = false, read = false;
  std::string keys;
  visit_fields(spec, [&](std::string_view name, auto& field) {
    keys += keys.empty() ? "" : ", ";
    keys += name;
    if (name != key) return;
    known = true;
    read = parse_number(value, field);
  });
  if (!known)
    throw Error(ErrorCode::usage, "Workload " + std::string(kind_name(spec.kind)) + " has no '" +
                                      std::string(key) + "'; it has " + keys);
  if (!read)
    throw Error(ErrorCode::usage, "Workload " + std::string(kind_name(spec.kind)) + ": '" +
                                      std::string(value) + "' is no value for " + std::string(key));
}

}  // namespace

WorkloadSpec parse_workload(std::string_view text) {
  constexpr std::string_view kSeparators = " ,:";
  WorkloadSpec spec;
  bool have_kind = false;
  std::set<std::string_view> seen;
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = text.find_first_not_of(kSeparators, end);
    if (!have_kind) {
      spec.kind = parse_kind(word);
      have_kind = true;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      throw Error(ErrorCode::usage, "Workload: '" + std::string(word) + "' is not key=value");
    const std::string_view key = word.substr(0, equals);
    if (!seen.insert(key).second)
      throw Error(ErrorCode::usage, "Workload: " + std::string(key) + " is given twice");
    set_field(spec, key, word.substr(equals + 1));
  }
  if (!have_kind) parse_kind("");
  return spec;
}

std::string describe(const WorkloadSpec& spec) {
  WorkloadSpec copy = spec;
  std::string text(kind_name(copy.kind));
  visit_fields(copy, [&](std::string_view name, const auto& field) {
    char digits[64];
    const auto written = std::to_chars(digits, digits + sizeof digits, field);
    text += " ";
    text += name;
    text += "=";
    text.append(digits, written.ptr);
  });
  if (copy.kind == WorkloadKind::agent && !copy.agent.arrivals.empty())
    text += " with " + std::to_string(copy.agent.arrivals.size()) + " arrivals";
  return text;
}

std::vector<ArrivalRow> load_rows(WorkloadKind kind, const std::filesystem::path& path) {
  switch (kind) {
    case WorkloadKind::agent:
      return {};
    case WorkloadKind::mooncake:
      return arrival_rows(path.empty() ? parse_mooncake(mooncake_sample(), "mooncake sample")
                                       : import_mooncake(path));
    case WorkloadKind::azure:
      return arrival_rows(path.empty() ? parse_azure(azure_sample(), "azure sample")
                                       : import_azure(path));
    case WorkloadKind::requests:
      if (path.empty())
        throw Error(ErrorCode::usage,
                    "workload requests needs the trace that holds them: --input FILE.rdt");
      return exchange_rows(path);
  }
  return {};
}

std::unique_ptr<TrafficSource> make_workload(const WorkloadSpec& spec,
                                             std::vector<ArrivalRow> rows) {
  if (spec.kind == WorkloadKind::agent) return std::make_unique<AgentWorkload>(spec.agent);
  return std::make_unique<ArrivalWorkload>(std::move(rows), spec.arrival);
}

}  // namespace redecode
