#include "compare/ops.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "compare/rows.h"
#include "compare/ulp.h"

namespace redecode {
namespace {

// Indices of `ops` by (layer, name, command), so that equal ops stand together in command order.
std::vector<uint32_t> sorted_by_key(std::span<const OpProbe> ops) {
  std::vector<uint32_t> order(ops.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(ops[a].layer, ops[a].op, ops[a].command) <
           std::tie(ops[b].layer, ops[b].op, ops[b].command);
  });
  return order;
}

int compare_keys(const OpProbe& a, const OpProbe& b) {
  if (a.layer != b.layer) return a.layer < b.layer ? -1 : 1;
  return a.op.compare(b.op);
}

uint32_t first_differing_row(const OpProbe& golden, const OpProbe& candidate) {
  const size_t rows = std::min(golden.row_digests.size(), candidate.row_digests.size());
  for (size_t row = 0; row < rows; ++row)
    if (golden.row_digests[row] != candidate.row_digests[row]) return static_cast<uint32_t>(row);
  return kNoRow;
}

bool differ(const OpProbe& golden, const OpProbe& candidate) {
  if (golden.digest == candidate.digest) return false;
  const size_t g = golden.row_digests.size(), c = candidate.row_digests.size();
  return g == 0 || c == 0 || g == c || first_differing_row(golden, candidate) != kNoRow;
}

void add_values(const OpProbe& golden, const OpProbe& candidate, Divergence& out) {
  const uint32_t size_bytes = golden.element_size_bytes;
  const bool readable = size_bytes == 1 || size_bytes == 2 || size_bytes == 4;
  if (!readable || size_bytes != candidate.element_size_bytes ||
      golden.values.size() != candidate.values.size())
    return;
  const auto difference = compare_elements(golden.values, candidate.values, size_bytes);
  if (!difference) return;
  out.element = difference->first;
  out.element_size_bytes = size_bytes;
  out.expected_bits = element_bits(golden.values, difference->first, size_bytes);
  out.found_bits = element_bits(candidate.values, difference->first, size_bytes);
  out.expected_text = bits_text(*out.expected_bits, size_bytes);
  out.found_text = bits_text(*out.found_bits, size_bytes);
  out.distance_ulps = ulp_distance_bits(*out.expected_bits, *out.found_bits, size_bytes);
  out.elements_differing = difference->count;
  out.largest_ulps = difference->largest_ulps;
}

Divergence describe_op(const OpProbe& golden, const OpProbe& candidate, uint32_t occurrence) {
  Divergence out;
  out.place = Place::op;
  out.row = first_differing_row(golden, candidate);
  out.op = DivergingOp{golden.op,     golden.layer,      occurrence,      golden.command,
                       golden.stream, candidate.command, candidate.stream};
  out.expected_digest = golden.digest;
  out.found_digest = candidate.digest;
  add_values(golden, candidate, out);
  return out;
}

}  // namespace

OpsDifference compare_ops(std::span<const OpProbe> golden, std::span<const OpProbe> candidate) {
  struct Pair {
    uint32_t golden, candidate, occurrence;
  };
  OpsDifference out;
  std::optional<Pair> first;
  const auto g_order = sorted_by_key(golden), c_order = sorted_by_key(candidate);
  size_t g = 0, c = 0;
  uint32_t occurrence = 0;
  while (g < g_order.size() && c < c_order.size()) {
    const OpProbe& expected = golden[g_order[g]];
    const OpProbe& found = candidate[c_order[c]];
    if (g == 0 || compare_keys(golden[g_order[g - 1]], expected) != 0) occurrence = 0;
    const int keys = compare_keys(expected, found);
    if (keys != 0) {
      ++(keys < 0 ? out.unmatched_golden : out.unmatched_candidate);
      ++(keys < 0 ? g : c);
      continue;
    }
    ++out.compared;
    if (differ(expected, found) && (!first || expected.command < golden[first->golden].command))
      first = Pair{g_order[g], c_order[c], occurrence};
    ++g, ++c, ++occurrence;
  }
  out.unmatched_golden += static_cast<uint32_t>(g_order.size() - g);
  out.unmatched_candidate += static_cast<uint32_t>(c_order.size() - c);
  if (first)
    out.first = describe_op(golden[first->golden], candidate[first->candidate], first->occurrence);
  return out;
}

}  // namespace redecode
