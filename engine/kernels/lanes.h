// engine/kernels/lanes.h - inner loops of attention, compression and index scores, one table an
// instruction set, all with the same bits.
//
// Lane layout: the contract's dot product gives lane l the elements 64i+2l and 64i+2l+1. A vector
// in lane layout stores each 64-element chunk as its 32 even elements, then its 32 odd ones, and
// pads the last chunk with zeros, so that a dot product is plain vector code: lane l takes element
// l, then 32+l of every chunk. `padded` below is lane_padded(dim), in elements. Vectors in natural
// and in lane layout must not overlap. No function allocates.
#pragma once
#include <cstdint>

namespace redecode {

enum class Isa;

inline constexpr uint32_t kLaneChunk = 64;
constexpr uint32_t lane_padded(uint32_t dim) {
  return (dim + kLaneChunk - 1) / kLaneChunk * kLaneChunk;
}
// Place of element d in lane layout.
constexpr uint32_t lane_place(uint32_t d) {
  return d / kLaneChunk * kLaneChunk + (d % 2) * (kLaneChunk / 2) + d % kLaneChunk / 2;
}

struct LaneKernels {
  // Natural layout -> lane layout [padded], exact. e2m1: two a byte, even element in the low
  // nibble.
  void (*from_f32)(const float* x, uint32_t dim, float* out);
  void (*from_bf16)(const uint16_t* x, uint32_t dim, float* out);
  void (*from_e4m3)(const uint8_t* x, uint32_t dim, float* out);
  void (*from_e2m1)(const uint8_t* x, uint32_t dim, float* out);

  // out[h * out_stride + j] = dot(q[h], keys[j]) in the contract's order; q [heads, padded], keys
  // [count, padded], both in lane layout.
  void (*dots)(const float* q, uint32_t heads, const float* keys, uint32_t count, uint32_t padded,
               float* out, uint32_t out_stride);

  // In place: s = x[j] * scale; returns m, the largest s (NaN passed over, -inf where there is
  // none); x[j] = s - m.
  float (*shift_scores)(float* x, uint32_t count, float scale);

  // For each head h: acc[h * dim + d] = fma(p[h * p_stride + j], values[j][d], acc[h * dim + d])
  // and sum[h] += p[h * p_stride + j], for j ascending.
  void (*weigh)(const float* p, uint32_t p_stride, uint32_t heads, const float* const* values,
                uint32_t count, uint32_t dim, float* acc, float* sum);

  // total[d] = fma(part[d], b, total[d] * a).
  void (*combine)(float* total, float a, const float* part, float b, uint32_t dim);
  // acc[i] = fma(a[i], b[i], acc[i]).
  void (*fma)(const float* a, const float* b, float* acc, uint64_t count);
  // acc[i] = fma(w, x[i], acc[i]).
  void (*axpy)(float w, const float* x, float* acc, uint64_t count);

  // logits[j] = fma(weights[h], relu(dots[h * dots_stride + j]) * scales[j], logits[j]), h
  // ascending, from +0; relu keeps NaN.
  void (*index_logits)(const float* dots, uint32_t dots_stride, uint32_t heads,
                       const float* weights, const float* scales, uint32_t count, float* logits);
};

// The table of an instruction set that this machine supports (CHECK).
const LaneKernels& lane_kernels(Isa isa);

// Tables of single instruction sets; lane_kernels is the way to them.
const LaneKernels& lane_kernels_plain();
const LaneKernels& lane_kernels_avx2();
const LaneKernels& lane_kernels_avx512();

}  // namespace redecode
