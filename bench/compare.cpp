// bench/compare.cpp - row pairs a second of comparing full logits, beside memcmp of the same
// arrays.
//
// Two arrays of rows [vocab = 129,280] f32, larger than any cache, compared row by row on one core.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/measure.h"
#include "compare/row_output.h"
#include "compare/rows.h"
#include "traces/check.h"

namespace {

using namespace redecode;

constexpr size_t kVocab = 129280, kRows = 512;

// Best of several passes: the machine's noise only ever adds time.
template <class Body>
double best_seconds(int repeats, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) best = std::min(best, seconds_of(body));
  return best;
}

void print(const char* name, double seconds, size_t rows) {
  const double pairs = static_cast<double>(rows) / seconds;
  std::printf("%-34s %10.0f row pairs/s %7.1f GB/s\n", name, pairs,
              pairs * 2.0 * kVocab * sizeof(float) * 1e-9);
}

std::vector<RowOutput> make_rows() {
  std::vector<RowOutput> out(kRows);
  for (size_t row = 0; row < kRows; ++row) {
    out[row].logits.resize(kVocab);
    for (size_t i = 0; i < kVocab; ++i)
      out[row].logits[i] = static_cast<float>((row * 31 + i * 7) % 1009);
  }
  return out;
}

size_t count_differing(const std::vector<RowOutput>& golden,
                       const std::vector<RowOutput>& candidate) {
  size_t differing = 0;
  for (size_t row = 0; row < kRows; ++row)
    differing += compare_row(golden[row], candidate[row]).has_value();
  return differing;
}

size_t count_by_memcmp(const std::vector<RowOutput>& golden,
                       const std::vector<RowOutput>& candidate) {
  size_t differing = 0;
  for (size_t row = 0; row < kRows; ++row)
    differing += std::memcmp(golden[row].logits.data(), candidate[row].logits.data(),
                             kVocab * sizeof(float)) != 0;
  return differing;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = has_flag(argc, argv, "--quick") ? 3 : 9;
  const std::vector<RowOutput> golden = make_rows();
  std::vector<RowOutput> candidate = golden;
  size_t differing = 0;
  print("memcmp, equal rows",
        best_seconds(repeats, [&] { differing = count_by_memcmp(golden, candidate); }), kRows);
  REDECODE_CHECK_OP(differing, ==, size_t{0});
  print("compare_row, equal rows",
        best_seconds(repeats, [&] { differing = count_differing(golden, candidate); }), kRows);
  REDECODE_CHECK_OP(differing, ==, size_t{0});
  for (RowOutput& row : candidate)
    for (size_t i = kVocab / 2; i < kVocab; i += 97) row.logits[i] += 0.5f;
  print("compare_row, every row differs",
        best_seconds(repeats, [&] { differing = count_differing(golden, candidate); }), kRows);
  REDECODE_CHECK_OP(differing, ==, size_t{kRows});
  return 0;
}
