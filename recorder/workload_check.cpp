#include "recorder/workload_check.h"

#include <string>

#include "traces/error.h"

namespace redecode {

void require_option(bool holds, const char* workload, const char* what) {
  if (!holds) throw Error(ErrorCode::usage, std::string(workload) + " workload: " + what);
}

void check_drawing(const char* workload, uint32_t vocab, const Sampling& sampling) {
  require_option(vocab > 0 && vocab <= INT32_MAX, workload,
                 "vocab must be at least 1 and fit a token");
  require_option(sampling.temperature >= 0, workload, "temperature must not be negative");
  require_option(sampling.top_k >= 0, workload, "top_k must not be negative");
  require_option(sampling.top_p > 0 && sampling.top_p <= 1, workload, "top_p must be in (0, 1]");
  require_option(sampling.min_p >= 0 && sampling.min_p < 1, workload, "min_p must be in [0, 1)");
}

}  // namespace redecode
