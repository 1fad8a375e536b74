#include "compare/row_output.h"

#include <algorithm>
#include <bit>
#include <span>

#include "compare/rows.h"
#include "compare/ulp.h"

namespace redecode {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

bool same_top(const std::vector<TopLogit>& a, const std::vector<TopLogit>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.token == y.token && bits_of(x.logit) == bits_of(y.logit);
  });
}

const TopLogit* find_token(const std::vector<TopLogit>& top, int32_t token) {
  for (const TopLogit& entry : top)
    if (entry.token == token) return &entry;
  return nullptr;
}

void set_numbers(std::optional<float> expected, std::optional<float> found, Divergence& out) {
  if (expected) {
    out.expected_bits = bits_of(*expected);
    out.expected_text = bits_text(*out.expected_bits, 4);
  }
  if (found) {
    out.found_bits = bits_of(*found);
    out.found_text = bits_text(*out.found_bits, 4);
  }
  if (expected && found) out.distance_ulps = ulp_distance(*expected, *found);
}

bool find_in_logits(const RowOutput& golden, const RowOutput& candidate, uint32_t max_ulps,
                    Divergence& out) {
  const auto difference = compare_f32(golden.logits, candidate.logits, max_ulps);
  if (!difference) return false;
  out.place = Place::logits;
  out.element = difference->first;
  out.elements_differing = difference->count;
  out.largest_ulps = difference->largest_ulps;
  set_numbers(golden.logits[difference->first], candidate.logits[difference->first], out);
  return true;
}

// The first entry of the lists that differs. A logit that moved others about the list is reported,
// not the ones it moved: those have equal bits at another place.
bool find_in_top(const RowOutput& golden, const RowOutput& candidate, Divergence& out) {
  const auto report = [&out](int32_t token, const TopLogit* expected, const TopLogit* found) {
    out.place = Place::logits;
    out.element = static_cast<uint64_t>(static_cast<uint32_t>(token));
    set_numbers(expected ? std::optional(expected->logit) : std::nullopt,
                found ? std::optional(found->logit) : std::nullopt, out);
    return true;
  };
  const size_t longest = std::max(golden.top.size(), candidate.top.size());
  for (size_t i = 0; i < longest; ++i) {
    if (i < candidate.top.size()) {
      const TopLogit* found = &candidate.top[i];
      if (!find_token(golden.top, found->token)) return report(found->token, nullptr, found);
    }
    if (i < golden.top.size()) {
      const TopLogit* expected = &golden.top[i];
      const TopLogit* found = find_token(candidate.top, expected->token);
      if (!found || bits_of(expected->logit) != bits_of(found->logit))
        return report(expected->token, expected, found);
    }
  }
  return false;
}

bool find_in_top_within(const RowOutput& golden, const RowOutput& candidate, uint32_t max_ulps,
                        Divergence& out) {
  for (const TopLogit& expected : golden.top) {
    const TopLogit* found = find_token(candidate.top, expected.token);
    if (found == nullptr || ulp_distance(expected.logit, found->logit) <= max_ulps) continue;
    out.place = Place::logits;
    out.element = static_cast<uint64_t>(static_cast<uint32_t>(expected.token));
    set_numbers(expected.logit, found->logit, out);
    return true;
  }
  return false;
}

bool find_in_log_sum_exp(const RowOutput& golden, const RowOutput& candidate, uint32_t max_ulps,
                         Divergence& out) {
  if (ulp_distance(golden.log_sum_exp, candidate.log_sum_exp) <= max_ulps) return false;
  out.place = Place::log_sum_exp;
  set_numbers(golden.log_sum_exp, candidate.log_sum_exp, out);
  return true;
}

bool find_in_numbers(const RowOutput& golden, const RowOutput& candidate, uint32_t max_ulps,
                     Divergence& out) {
  const bool full = !golden.logits.empty() && golden.logits.size() == candidate.logits.size();
  if (full && find_in_logits(golden, candidate, max_ulps, out)) return true;
  if (max_ulps > 0) {
    return !full && (find_in_top_within(golden, candidate, max_ulps, out) ||
                     find_in_log_sum_exp(golden, candidate, max_ulps, out));
  }
  if (find_in_top(golden, candidate, out)) return true;
  if (find_in_log_sum_exp(golden, candidate, 0, out)) return true;
  if (golden.logits_digest == candidate.logits_digest && same_top(golden.top, candidate.top))
    return false;
  out.place = Place::digest;
  return true;
}

}  // namespace

bool same_bits(const RowOutput& golden, const RowOutput& candidate) {
  const bool full = !golden.logits.empty() && golden.logits.size() == candidate.logits.size();
  return golden.request == candidate.request && golden.position == candidate.position &&
         golden.token == candidate.token && golden.logits_digest == candidate.logits_digest &&
         bits_of(golden.log_sum_exp) == bits_of(candidate.log_sum_exp) &&
         same_top(golden.top, candidate.top) &&
         (!full || same_f32(golden.logits, candidate.logits));
}

std::optional<Divergence> compare_row(const RowOutput& golden, const RowOutput& candidate,
                                      uint32_t max_ulps) {
  if (same_bits(golden, candidate)) return std::nullopt;
  Divergence out;
  out.row = golden.row;
  out.request = golden.request;
  out.position = golden.position;
  out.expected_digest = golden.logits_digest;
  out.found_digest = candidate.logits_digest;
  out.expected_token = golden.token;
  out.found_token = candidate.token;
  if (golden.request != candidate.request || golden.position != candidate.position) {
    out.place = Place::rows;
    return out;
  }
  if (find_in_numbers(golden, candidate, max_ulps, out)) return out;
  if (golden.token == candidate.token) return std::nullopt;
  out.place = Place::token;
  return out;
}

}  // namespace redecode
