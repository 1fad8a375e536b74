#include "recorder/sampler.h"

#include <algorithm>
#include <charconv>

#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

[[noreturn]] void refuse(std::string_view part) {
  throw Error(ErrorCode::usage,
              "sampling is 'all', '1/N', 'requests:ID,ID', 'sessions:N,N' or 'steps:A..B', parts "
              "joined by ';'",
              "'" + std::string(part) + "'");
}

template <class Number>
Number number(std::string_view text, std::string_view part) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) refuse(part);
  return value;
}

template <class Act>
void each(std::string_view text, char separator, const Act& act) {
  while (true) {
    const size_t at = text.find(separator);
    act(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

bool starts(std::string_view text, std::string_view with, std::string_view& rest) {
  if (!text.starts_with(with)) return false;
  rest = text.substr(with.size());
  return true;
}

// Spreads request numbers evenly over 64 bits (the finaliser of SplitMix64).
uint64_t spread(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Sampler::Sampler(std::string_view text) : places_(kRemembered) {
  if (text.empty() || text == "all") return;
  text_ = text;
  each(text, ';', [this](std::string_view part) { read_part(part); });
}

void Sampler::read_part(std::string_view part) {
  std::string_view rest;
  if (part == "all") return;
  if (starts(part, "1/", rest)) {
    one_in_ = number<uint32_t>(rest, part);
    if (one_in_ == 0) refuse(part);
    selects_ = true;
  } else if (starts(part, "requests:", rest)) {
    each(rest, ',', [&](std::string_view id) {
      if (id.empty()) refuse(part);
      names_.emplace(id);
    });
    selects_ = true;
  } else if (starts(part, "sessions:", rest)) {
    each(rest, ',', [&](std::string_view id) { sessions_.insert(number<SessionId>(id, part)); });
    selects_ = true;
  } else if (starts(part, "steps:", rest)) {
    const size_t dots = rest.find("..");
    if (dots == std::string_view::npos) refuse(part);
    first_ = number<StepIndex>(rest.substr(0, dots), part);
    last_ = number<StepIndex>(rest.substr(dots + 2), part);
    if (first_ > last_) refuse(part);
  } else {
    refuse(part);
  }
}

void Sampler::name(RequestId request, std::string_view engine_id) {
  if (names_.contains(engine_id)) named_.insert(request);
}

bool Sampler::keeps(RequestId request) const {
  if (!selects_) return true;
  if (const auto found = kept_.find(request); found != kept_.end()) return found->second;
  if (one_in_ != 0 && spread(request) % one_in_ == 0) return true;
  return named_.contains(request) || names_.contains(std::to_string(request));
}

bool Sampler::apply(Step& step) {
  if (selects_) {
    for (const Arrival& a : step.arrivals)
      kept_[a.request] = keeps(a.request) || sessions_.contains(a.session);
    Places& places = places_[step.index % kRemembered];
    places.step = step.index;
    places.places.clear();
    uint32_t kept = 0;
    for (const Row& row : step.rows)
      places.places.push_back(keeps(row.request) ? kept++ : UINT32_MAX);
    const auto left_out = [this](const auto& item) { return !keeps(item.request); };
    step.rows_left_out += static_cast<uint32_t>(std::erase_if(step.rows, left_out));
    std::erase_if(step.arrivals, left_out);
    std::erase_if(step.page_changes, left_out);
    std::vector<RequestId> gone;
    for (const Departure& d : step.departures) gone.push_back(d.request);
    std::erase_if(step.departures, left_out);
    for (RequestId request : gone) kept_.erase(request);
  }
  return in_window(step.index);
}

bool Sampler::apply(StepOutput& output) {
  if (!in_window(output.step)) return false;
  if (!selects_) return true;
  const Places& places = places_[output.step % kRemembered];
  if (places.step != output.step) return false;
  std::erase_if(output.rows, [&](RowOutput& row) {
    if (row.row >= places.places.size()) return true;
    row.row = places.places[row.row];
    return row.row == UINT32_MAX;
  });
  return true;
}

}  // namespace redecode
