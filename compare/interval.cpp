#include "compare/interval.h"

#include <cmath>
#include <cstdio>

#include "traces/check.h"

namespace redecode {
namespace {

// Continued fraction of the incomplete beta, by the modified Lentz method; converges fast for
// x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kClose = 1e-15;
  constexpr int kMaxTerms = 100000;
  const auto away = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1.0, d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0)), value = d;
  for (int i = 1; i <= kMaxTerms; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away(1.0 + even * d);
    c = away(1.0 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away(1.0 + odd * d);
    c = away(1.0 + odd / c);
    value *= d * c;
    if (std::fabs(d * c - 1.0) < kClose) break;
  }
  return value;
}

// The x at which I_x(a, b) reaches `target`; I grows with x.
double beta_quantile(double a, double b, double target) {
  double low = 0.0, high = 1.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2.0;
    if (middle <= low || middle >= high) break;
    (incomplete_beta(a, b, middle) < target ? low : high) = middle;
  }
  return high;
}

double lower_end(uint64_t failures, uint64_t trials, double outside) {
  if (failures == 0) return 0.0;
  const double k = static_cast<double>(failures), n = static_cast<double>(trials);
  return beta_quantile(k, n - k + 1.0, outside);
}

double upper_end(uint64_t failures, uint64_t trials, double outside) {
  if (failures == trials) return 1.0;
  const double k = static_cast<double>(failures), n = static_cast<double>(trials);
  return beta_quantile(k + 1.0, n - k, 1.0 - outside);
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  REDECODE_CHECK(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0);
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

RateInterval clopper_pearson(uint64_t failures, uint64_t trials, double confidence) {
  REDECODE_CHECK_OP(failures, <=, trials);
  REDECODE_CHECK(confidence > 0.0 && confidence < 1.0);
  if (trials == 0) return {};
  const double outside = (1.0 - confidence) / 2.0;
  return {lower_end(failures, trials, outside), upper_end(failures, trials, outside)};
}

double upper_bound(uint64_t failures, uint64_t trials, double confidence) {
  REDECODE_CHECK_OP(failures, <=, trials);
  REDECODE_CHECK(confidence > 0.0 && confidence < 1.0);
  if (trials == 0) return 1.0;
  if (failures == 0) return -std::expm1(std::log1p(-confidence) / static_cast<double>(trials));
  return upper_end(failures, trials, 1.0 - confidence);
}

std::string rate_text(uint64_t failures, uint64_t trials) {
  char text[128];
  const auto k = static_cast<unsigned long long>(failures);
  const auto n = static_cast<unsigned long long>(trials);
  if (trials == 0) {
    std::snprintf(text, sizeof text, "%llu of 0", k);
  } else if (failures == 0) {
    std::snprintf(text, sizeof text, "0 of %llu: below %.2g %% at 95 %% (one-sided)", n,
                  100.0 * upper_bound(0, trials));
  } else {
    const RateInterval interval = clopper_pearson(failures, trials);
    std::snprintf(text, sizeof text, "%llu of %llu: %.1f %% (95 %% interval %.1f to %.1f %%)", k, n,
                  100.0 * static_cast<double>(failures) / static_cast<double>(trials),
                  100.0 * interval.lower, 100.0 * interval.upper);
  }
  return text;
}

}  // namespace redecode
