// compare/interval.h - what k failures in n trials say about the rate: exact (Clopper-Pearson)
// bounds.
//
// The trials must be independent and alike: sessions are, rows of one session are not.
#pragma once
#include <cstdint>
#include <string>

namespace redecode {

// I_x(a, b) with a, b > 0 and x in [0, 1]; relative error below 1e-8 for a, b up to 1e6.
double incomplete_beta(double a, double b, double x);

struct RateInterval {
  double lower = 0.0;
  double upper = 1.0;
};

// Two-sided at `confidence`: each end leaves (1 - confidence) / 2 outside. Requires failures <=
// trials and 0 < confidence < 1 (CHECK). No trials: [0, 1].
RateInterval clopper_pearson(uint64_t failures, uint64_t trials, double confidence = 0.95);

// One-sided: the rate is below this at `confidence`. With no failure it is
// 1 - (1 - confidence)^(1 / trials): 299 clean trials say "below 1 % at 95 %". No trials: 1.
double upper_bound(uint64_t failures, uint64_t trials, double confidence = 0.95);

// "4 of 200: 2.0 % (95 % interval 0.5 to 5.0 %)", or, with no failure,
// "0 of 299: below 1.0 % at 95 % (one-sided)". "0 of 0" when there are no trials.
std::string rate_text(uint64_t failures, uint64_t trials);

}  // namespace redecode
