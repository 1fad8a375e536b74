#include "compare/interval.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace redecode;

namespace {
bool near(double value, double expected, double tolerance) {
  return std::fabs(value - expected) <= tolerance;
}

// P(X >= k) of a binomial, which is I_p(k, n - k + 1).
double binomial_tail(int k, int n, double p) {
  double sum = 0.0;
  for (int i = k; i <= n; ++i)
    sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) +
                    i * std::log(p) + (n - i) * std::log1p(-p));
  return sum;
}
}  // namespace

TEST_CASE("the incomplete beta is the binomial tail") {
  for (const int n : {1, 7, 60, 300})
    for (const int k : {1, n / 2 + 1, n})
      for (const double p : {0.001, 0.02, 0.3, 0.5, 0.9})
        CHECK(near(incomplete_beta(k, n - k + 1, p), binomial_tail(k, n, p), 1e-10));
  CHECK(incomplete_beta(2, 3, 0.0) == 0.0);
  CHECK(incomplete_beta(2, 3, 1.0) == 1.0);
  CHECK(near(incomplete_beta(1, 1, 0.25), 0.25, 1e-14));
}

TEST_CASE("two-sided intervals have their known values") {
  CHECK(near(clopper_pearson(0, 300).upper, 0.0122, 0.00005));
  CHECK(clopper_pearson(0, 300).lower == 0.0);
  CHECK(near(clopper_pearson(4, 200).lower, 0.0054754, 1e-6));
  CHECK(near(clopper_pearson(4, 200).upper, 0.0504137, 1e-6));
  CHECK(near(clopper_pearson(9, 60).lower, 0.0709562, 1e-6));
  CHECK(near(clopper_pearson(9, 60).upper, 0.2657404, 1e-6));
  CHECK(clopper_pearson(60, 60).upper == 1.0);
  CHECK(near(clopper_pearson(60, 60).lower, std::pow(0.025, 1.0 / 60.0), 1e-12));
  CHECK(clopper_pearson(0, 0).lower == 0.0);
  CHECK(clopper_pearson(0, 0).upper == 1.0);
}

TEST_CASE("each end of the interval leaves its share outside") {
  for (const uint64_t k : {1u, 5u, 59u}) {
    const RateInterval i = clopper_pearson(k, 60);
    CHECK(near(binomial_tail(static_cast<int>(k), 60, i.lower), 0.025, 1e-9));
    CHECK(near(1.0 - binomial_tail(static_cast<int>(k) + 1, 60, i.upper), 0.025, 1e-9));
  }
}

TEST_CASE("clean trials bound the rate from above") {
  CHECK(upper_bound(0, 299) < 0.01);
  CHECK(upper_bound(0, 298) > 0.01);
  CHECK(upper_bound(0, 2995) < 0.001);
  CHECK(upper_bound(0, 2994) > 0.001);
  CHECK(near(upper_bound(0, 299), 1.0 - std::pow(0.05, 1.0 / 299.0), 1e-14));
  CHECK(upper_bound(0, 459, 0.99) < 0.01);
  CHECK(upper_bound(0, 458, 0.99) > 0.01);
  CHECK(upper_bound(0, 0) == 1.0);
  CHECK(upper_bound(5, 5) == 1.0);
}

TEST_CASE("one, two and three failures still allow below 1 % at their known counts") {
  CHECK(upper_bound(1, 473) <= 0.01);
  CHECK(upper_bound(1, 472) > 0.01);
  CHECK(upper_bound(2, 628) <= 0.01);
  CHECK(upper_bound(2, 627) > 0.01);
  CHECK(upper_bound(3, 773) <= 0.01);
  CHECK(upper_bound(3, 772) > 0.01);
}

TEST_CASE("rates are said in words") {
  CHECK(rate_text(0, 299) == "0 of 299: below 1 % at 95 % (one-sided)");
  CHECK(rate_text(4, 200) == "4 of 200: 2.0 % (95 % interval 0.5 to 5.0 %)");
  CHECK(rate_text(0, 0) == "0 of 0");
}
