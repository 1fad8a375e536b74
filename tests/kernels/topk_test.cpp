#include "engine/kernels/topk.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/kernels/paths.h"

namespace redecode {
namespace {

// Sort everything, take k, sort by index.
std::vector<int32_t> topk_by_sorting(const float* scores, int32_t count, uint32_t k) {
  std::vector<int32_t> order(static_cast<size_t>(std::max(count, 0)));
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int32_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<double>::infinity() - 1.0
                                 : static_cast<double>(scores[i]);
  };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const bool a_nan = std::isnan(scores[a]), b_nan = std::isnan(scores[b]);
    if (a_nan || b_nan) return !a_nan && b_nan;
    return rank(a) > rank(b);
  });
  order.resize(std::min<size_t>(order.size(), k));
  std::sort(order.begin(), order.end());
  order.resize(k, -1);
  return order;
}

std::vector<int32_t> run_topk(Exec& exec, TopkVersion version, const std::vector<float>& scores,
                              uint32_t stride, const std::vector<int32_t>& counts, uint32_t k) {
  std::vector<int32_t> out(counts.size() * k + 1, 77);
  topk_indices(exec, version, scores.data(), stride, counts.data(),
               static_cast<uint32_t>(counts.size()), k, out.data());
  CHECK(out.back() == 77);
  out.pop_back();
  return out;
}

void check_both(const std::vector<float>& scores, uint32_t stride,
                const std::vector<int32_t>& counts, uint32_t k) {
  std::vector<int32_t> expected;
  for (size_t row = 0; row < counts.size(); ++row) {
    const int32_t count = std::min(counts[row], static_cast<int32_t>(stride));
    const auto best = topk_by_sorting(scores.data() + row * stride, count, k);
    expected.insert(expected.end(), best.begin(), best.end());
  }
  for (const int threads : {1, 2, 3}) {
    Exec exec(threads);
    REQUIRE(run_topk(exec, TopkVersion::v1, scores, stride, counts, k) == expected);
    REQUIRE(run_topk(exec, TopkVersion::v2, scores, stride, counts, k) == expected);
  }
}

TEST_CASE("both top-k versions agree with sorting on random scores") {
  RandomSequence random(1);
  for (int round = 0; round < 200; ++round) {
    const auto rows = static_cast<uint32_t>(1 + random.below(5));
    const auto stride = static_cast<uint32_t>(1 + random.below(300));
    const auto k = static_cast<uint32_t>(random.below(70));
    std::vector<int32_t> counts;
    for (uint32_t row = 0; row < rows; ++row) {
      counts.push_back(static_cast<int32_t>(random.below(stride + 1)));
    }
    check_both(test::random_floats(random.next(), uint64_t{rows} * stride), stride, counts, k);
  }
}

TEST_CASE("both top-k versions agree on ties, zeros of both signs, NaN and infinities") {
  const float palette[] = {0.0f,
                           -0.0f,
                           1.0f,
                           -1.0f,
                           1e-45f,
                           -1e-45f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::lowest()};
  RandomSequence random(2);
  for (int round = 0; round < 300; ++round) {
    const uint64_t colours = 1 + random.below(12), first = random.below(12);
    const auto stride = static_cast<uint32_t>(1 + random.below(64));
    std::vector<float> scores;
    for (uint32_t j = 0; j < 2 * stride; ++j) {
      scores.push_back(palette[(first + random.below(colours)) % 12]);
    }
    check_both(scores, stride, {static_cast<int32_t>(stride), static_cast<int32_t>(stride / 2)},
               static_cast<uint32_t>(random.below(40)));
  }
}

TEST_CASE("top-k treats -0 and +0 as one score, the lower index first") {
  check_both({-0.0f, 0.0f, -0.0f, 0.0f}, 4, {4}, 2);
  Exec exec;
  for (const TopkVersion version : {TopkVersion::v1, TopkVersion::v2}) {
    CHECK(run_topk(exec, version, {-0.0f, 0.0f, -0.0f, 0.0f}, 4, {4}, 2) ==
          std::vector<int32_t>{0, 1});
    CHECK(run_topk(exec, version, {NAN, 1.0f, -INFINITY, NAN}, 4, {4}, 3) ==
          std::vector<int32_t>{0, 1, 2});
  }
}

TEST_CASE("top-k fills with -1 and cuts counts to the width") {
  Exec exec;
  for (const TopkVersion version : {TopkVersion::v1, TopkVersion::v2}) {
    CHECK(run_topk(exec, version, {1.0f, 2.0f}, 2, {2}, 4) == std::vector<int32_t>{0, 1, -1, -1});
    CHECK(run_topk(exec, version, {1.0f, 2.0f}, 2, {-5}, 2) == std::vector<int32_t>{-1, -1});
    CHECK(run_topk(exec, version, {1.0f, 2.0f}, 2, {1000}, 1) == std::vector<int32_t>{1});
    CHECK(run_topk(exec, version, {1.0f, 2.0f}, 2, {0}, 1) == std::vector<int32_t>{-1});
    CHECK(run_topk(exec, version, {1.0f, 2.0f}, 2, {2}, 0).empty());
  }
}

}  // namespace
}  // namespace redecode
