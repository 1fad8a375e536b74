// engine/kernels/topk.h - two algorithms, one total order: score descending, index ascending, NaN
// last.
#pragma once
#include <cstdint>

#include "engine/kernels/exec.h"
#include "traces/mode.h"

namespace redecode {

// The k best of scores[0..counts[row]) of each row; out [rows, k] holds their indices ascending,
// then -1. -0 and +0 are equal. v1 keeps a bounded heap; v2 selects by radix on the
// order-preserving bits of the score. Both give the same output for every input. Counts outside [0,
// scores_stride] are cut to it.
void topk_indices(Exec& exec, TopkVersion version, const float* scores, uint32_t scores_stride,
                  const int32_t* counts, uint32_t rows, uint32_t k, int32_t* out);

}  // namespace redecode
