#include "engine/kernels/sample.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "engine/kernels/math.h"
#include "tests/kernels/paths.h"

namespace redecode {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Rows {
  std::vector<float> temperature, top_p, min_p;
  std::vector<int32_t> top_k, positions;
  std::vector<uint64_t> seed;

  void add(const Sampling& s, int32_t position) {
    temperature.push_back(s.temperature);
    top_k.push_back(s.top_k);
    top_p.push_back(s.top_p);
    min_p.push_back(s.min_p);
    seed.push_back(s.seed);
    positions.push_back(position);
  }
  SamplingColumns columns(size_t first = 0) const {
    return {temperature.data() + first, top_k.data() + first, top_p.data() + first,
            min_p.data() + first,       seed.data() + first,  positions.data() + first};
  }
  std::vector<int32_t> run(Exec& exec, const std::vector<float>& logits, size_t first,
                           size_t count) const {
    const size_t vocab = logits.size() / seed.size();
    std::vector<int32_t> tokens(count, -7);
    sample_tokens(exec, logits.data() + first * vocab, static_cast<uint32_t>(vocab), columns(first),
                  static_cast<uint32_t>(count), tokens.data());
    return tokens;
  }
};

int32_t sample_one(const std::vector<float>& logits, const Sampling& s, int32_t position = 0) {
  Exec exec;
  Rows rows;
  rows.add(s, position);
  return rows.run(exec, logits, 0, 1)[0];
}

// Share of each token over `draws` positions.
std::vector<int> draw_counts(const std::vector<float>& logits, Sampling s, int draws) {
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sample_one(logits, s, i))];
  return counts;
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& p) {
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0.0;
  for (size_t t = 0; t < p.size(); ++t) {
    if (p[t] == 0.0) {
      if (counts[t] > 0) return 1e9;
      continue;
    }
    sum += (counts[t] - draws * p[t]) * (counts[t] - draws * p[t]) / (draws * p[t]);
  }
  return sum;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  for (const float logit : logits) p.push_back(std::exp(static_cast<double>(logit) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= sum;
  return p;
}

void keep_only(std::vector<double>& p, const std::vector<size_t>& tokens) {
  double sum = 0.0;
  for (size_t t = 0; t < p.size(); ++t) {
    if (std::find(tokens.begin(), tokens.end(), t) == tokens.end()) p[t] = 0.0;
    sum += p[t];
  }
  for (double& value : p) value /= sum;
}

const std::vector<float> kLogits = {0.5f, 2.0f, -1.0f, 1.0f, 0.0f, 1.5f, -3.0f, 0.25f};

TEST_CASE("temperature 0 is argmax, ties to the lower token, NaN last") {
  CHECK(sample_one({1, 3, 2}, {}) == 1);
  CHECK(sample_one({3, 1, 3}, {}) == 0);
  CHECK(sample_one({-0.0f, 0.0f}, {}) == 0);
  CHECK(sample_one({kNan, -5, kNan}, {}) == 1);
  CHECK(sample_one({-kInf, -5, -kInf}, {}) == 1);
  CHECK(sample_one({1, kInf, 2}, {}) == 1);
  Sampling negative;
  negative.temperature = -1.0f;
  CHECK(sample_one({1, 3, 2}, negative) == 1);
  negative.temperature = kNan;
  CHECK(sample_one({1, 3, 2}, negative) == 1);
}

TEST_CASE("a row without a finite logit gives token 0") {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampling s;
    s.temperature = temperature;
    CHECK(sample_one({kNan, kNan}, s) == 0);
    CHECK(sample_one({-kInf, -kInf, kNan}, s) == 0);
    CHECK(sample_one({-kInf, kInf}, s) == 0);
  }
}

TEST_CASE("draws follow the softmax at its temperature") {
  // 7 degrees of freedom: 24.3 is exceeded once in a thousand.
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    Sampling s;
    s.temperature = temperature;
    s.seed = 99;
    const auto counts = draw_counts(kLogits, s, 20000);
    CHECK(chi_square(counts, softmax(kLogits, static_cast<double>(temperature))) < 24.3);
  }
}

TEST_CASE("top-k, top-p and min-p cut the candidates and leave their shares") {
  Sampling s;
  s.temperature = 1.0f;
  s.seed = 5;
  SECTION("top-k") {
    s.top_k = 3;
    auto p = softmax(kLogits, 1.0);
    keep_only(p, {1, 5, 3});
    CHECK(chi_square(draw_counts(kLogits, s, 10000), p) < 13.9);
  }
  SECTION("top-p keeps the smallest set that reaches the mass") {
    auto p = softmax(kLogits, 1.0);
    s.top_p = static_cast<float>(p[1] + p[5] + p[3] / 2);
    keep_only(p, {1, 5, 3});
    CHECK(chi_square(draw_counts(kLogits, s, 10000), p) < 13.9);
  }
  SECTION("top-p stops at the first candidate that reaches it") {
    const auto p = softmax(kLogits, 1.0);
    s.top_p = static_cast<float>((p[1] + p[5]) * 0.999);
    CHECK(draw_counts(kLogits, s, 2000)[3] == 0);
    s.top_p = static_cast<float>((p[1] + p[5]) * 1.001);
    CHECK(draw_counts(kLogits, s, 2000)[3] > 0);
  }
  SECTION("top-p counts the mass that top-k left") {
    auto p = softmax(kLogits, 1.0);
    keep_only(p, {1, 5, 3});
    s.top_k = 3;
    s.top_p = static_cast<float>(p[1] + p[5] / 2);
    keep_only(p, {1, 5});
    CHECK(chi_square(draw_counts(kLogits, s, 10000), p) < 10.9);
  }
  SECTION("min-p is a share of the largest") {
    s.min_p = std::exp(-1.25f);  // between logits 1.0 and 0.5
    auto p = softmax(kLogits, 1.0);
    keep_only(p, {1, 5, 3});
    CHECK(chi_square(draw_counts(kLogits, s, 10000), p) < 13.9);
  }
  SECTION("one candidate always stays") {
    s.top_p = 0.0f;
    s.min_p = 1.0f;
    CHECK(draw_counts(kLogits, s, 100)[1] == 100);
    s.top_k = 1;
    CHECK(draw_counts({2, 2, 2}, s, 100)[0] == 100);
  }
}

TEST_CASE("the draw depends on seed and position, and on them alone") {
  Sampling s;
  s.temperature = 1.0f;
  std::map<int32_t, int> by_seed, by_position;
  for (int i = 0; i < 200; ++i) {
    s.seed = static_cast<uint64_t>(i);
    ++by_seed[sample_one(kLogits, s, 3)];
    s.seed = 1;
    ++by_position[sample_one(kLogits, s, i)];
    CHECK(sample_one(kLogits, s, i) == sample_one(kLogits, s, i));
  }
  CHECK(by_seed.size() > 4);
  CHECK(by_position.size() > 4);
}

TEST_CASE("extreme logits do not break the draw") {
  Sampling s;
  s.temperature = 1.0f;
  CHECK(sample_one({1.0f, kInf, 3.0f}, s) == 1);
  CHECK(sample_one({-1e30f, 1e30f, kNan}, s) == 1);
  s.temperature = 1e-30f;
  CHECK(sample_one({1e20f, 3e20f, 2e20f}, s) == 1);
  s.temperature = 1.0f;
  for (int i = 0; i < 50; ++i) CHECK(sample_one({-kInf, 0.0f, kNan, 0.0f}, s, i) % 2 == 1);
}

TEST_CASE("tokens are the same on every path, thread count and batch") {
  const uint32_t vocab = 700;
  const std::vector<float> logits = test::random_floats(3, 64 * vocab, 5.0f);
  Rows rows;
  RandomSequence random(8);
  for (int row = 0; row < 64; ++row) {
    Sampling s;
    s.temperature = row % 4 == 0 ? 0.0f : 0.2f + random.unit();
    s.top_k = static_cast<int32_t>(random.below(3) * 40);
    s.top_p = random.below(2) == 0 ? 1.0f : 0.5f + random.unit() / 2;
    s.min_p = random.below(2) == 0 ? 0.0f : random.unit() / 10;
    s.seed = random.next();
    rows.add(s, row * 7);
  }
  Exec plain(1, Isa::plain);
  const std::vector<int32_t> expected = rows.run(plain, logits, 0, 64);
  for (const Isa isa : test::supported_isas()) {
    for (const int threads : {1, 2, 3}) {
      Exec exec(threads, isa);
      CHECK(rows.run(exec, logits, 0, 64) == expected);
      for (const size_t row : {0u, 13u, 63u}) {
        CHECK(rows.run(exec, logits, row, 1)[0] == expected[row]);
      }
    }
  }
}

TEST_CASE("a summary holds digest, log-sum-exp and the largest logits") {
  std::vector<float> logits = test::random_floats(4, 1000, 8.0f);
  logits[10] = logits[900] = 9.0f;
  logits[500] = 9.5f;
  const LogitsSummary summary = summarize_logits(logits);
  CHECK(summary.digest == digest_span(std::span<const float>(logits)));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  CHECK(std::fabs(static_cast<double>(summary.log_sum_exp) - std::log(sum)) < 2e-6);
  std::vector<int32_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  REQUIRE(summary.top.size() == kTopLogits);
  CHECK(summary.top[0].token == 500);
  CHECK(summary.top[1].token == 10);
  CHECK(summary.top[2].token == 900);
  for (size_t i = 0; i < kTopLogits; ++i) {
    CHECK(summary.top[i].token == order[i]);
    CHECK(summary.top[i].logit == logits[static_cast<size_t>(order[i])]);
  }
  logits[3] += 0.5f;
  CHECK(summarize_logits(logits).digest != summary.digest);
}

TEST_CASE("log-sum-exp adds in the contract's lanes") {
  for (const size_t count : {1u, 2u, 31u, 64u, 65u, 130u}) {
    std::vector<float> logits = test::random_floats(count, count, 2.0f);
    logits[count / 2] = 3.0f;
    std::vector<float> lanes(32, 0.0f);
    for (size_t i = 0; i < count; ++i) lanes[i % 64 / 2] += exp_f32(logits[i] - 3.0f);
    for (size_t step = 16; step > 0; step /= 2) {
      for (size_t l = 0; l < step; ++l) lanes[l] += lanes[l + step];
    }
    CHECK(summarize_logits(logits).log_sum_exp == 3.0f + log_f32(lanes[0]));
  }
}

TEST_CASE("a summary of few, infinite or undefined logits is defined") {
  const LogitsSummary few = summarize_logits(std::vector<float>{kNan, 1.0f, -kInf});
  REQUIRE(few.top.size() == 3);
  CHECK(few.top[0].token == 1);
  CHECK(few.top[1].token == 2);
  CHECK(few.top[2].token == 0);
  CHECK(std::isnan(few.log_sum_exp));
  CHECK(summarize_logits(std::vector<float>{-kInf, -kInf}).log_sum_exp == -kInf);
  CHECK(summarize_logits(std::vector<float>{1.0f, kInf}).log_sum_exp == kInf);
  CHECK(std::isnan(summarize_logits(std::vector<float>{kNan, kInf}).log_sum_exp));
  CHECK(summarize_logits(std::vector<float>{1.0f, 2.0f}, 0).top.empty());
  CHECK(summarize_logits(std::vector<float>{}).top.empty());
}

}  // namespace
}  // namespace redecode
