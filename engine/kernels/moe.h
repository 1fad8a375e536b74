// engine/kernels/moe.h - mixture of experts: routing and the routed experts.
#pragma once
#include <cstdint>

#include "engine/kernels/exec.h"
#include "engine/kernels/matrix.h"

namespace redecode {

// score = sqrt(softplus(logit)); the k experts with the largest score + bias (total order as top-k)
// are chosen, best first; weight = score / (sum of chosen scores, in slot order) * scaling. bias
// may be null. k <= experts (CHECK). logits [rows, experts] -> ids [rows, k] i32, weights [rows, k]
// f32.
void moe_route(Exec& exec, const float* logits, const float* bias, uint32_t rows, uint32_t experts,
               uint32_t k, float scaling, int32_t* ids, float* weights);

// Expert e's three matrices lie at base + e * stride of expert 0's: gate, up [inter, dim], down
// [dim, inter].
struct Experts {
  Matrix gate, up, down;  // of expert 0
  uint64_t gate_stride_bytes = 0, up_stride_bytes = 0, down_stride_bytes = 0;
  uint32_t count = 0;
};
// out[t, :] = sum over slots s ascending of weights[t, s] * down(swiglu(gate(x[t]), up(x[t]))), one
// fma a term. The sum starts at +0; ids outside [0, count) add nothing. scratch: at least
// moe_scratch_floats(...) f32. Rows are grouped by expert for speed; no bit depends on it.
uint64_t moe_scratch_floats(uint32_t rows, uint32_t k, uint32_t dim, uint32_t inter);
void moe_experts(Exec& exec, const Experts& experts, const float* x, uint32_t rows, uint32_t k,
                 const int32_t* ids, const float* weights, float* scratch, float* out);

}  // namespace redecode
