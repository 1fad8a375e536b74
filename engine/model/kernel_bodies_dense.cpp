#include <cstring>

#include "engine/kernels/dot.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/sample.h"
#include "engine/model/kernel_bodies.h"
#include "traces/check.h"

namespace redecode {

Matrix matrix_at(const Launch& l, size_t operand, size_t arg) {
  return {static_cast<DType>(l.arg(arg)), static_cast<uint32_t>(l.arg(arg + 1)),
          static_cast<uint32_t>(l.arg(arg + 2)), l.operands[operand]};
}

PagedRows paged_at(const Launch& l, size_t table_operand, size_t positions_operand, size_t arg) {
  return {l.at<const int32_t>(table_operand), static_cast<uint32_t>(l.arg(arg)),
          static_cast<uint32_t>(l.arg(arg + 1)), l.at<const int32_t>(positions_operand),
          static_cast<uint32_t>(l.arg(arg + 2))};
}

namespace {

uint32_t u32(const Launch& l, size_t arg) { return static_cast<uint32_t>(l.arg(arg)); }

// [table, tokens, out] (dtype, vocab, dim, rows)
void embed_body(const Launch& l) {
  embed(l.exec, matrix_at(l, 0, 0), l.at<const int32_t>(1), u32(l, 3), l.at<float>(2));
}

// [x, row_indices, out] (dim, count)
void gather_rows_body(const Launch& l) {
  const size_t dim = u32(l, 0);
  for (size_t i = 0; i < u32(l, 1); ++i) {
    const auto row = static_cast<size_t>(l.at<const int32_t>(1)[i]);
    std::memcpy(l.at<float>(2) + i * dim, l.at<const float>(0) + row * dim, dim * sizeof(float));
  }
}

// [x, weight, out] (x_stride, out_stride, dim, eps, rows, has_weight)
void rms_norm_body(const Launch& l) {
  rms_norm(l.exec, l.at<const float>(0), static_cast<uint64_t>(l.arg(0)),
           l.arg(5) != 0 ? l.at<const float>(1) : nullptr, l.real(3), u32(l, 4), u32(l, 2),
           l.at<float>(2), static_cast<uint64_t>(l.arg(1)));
}

// [w, x, y] (dtype, n, k, x_stride, y_stride, rows)
void gemm_body(const Launch& l) {
  gemm(l.exec, matrix_at(l, 0, 0), l.at<const float>(1), u32(l, 3), l.at<float>(2), u32(l, 4),
       u32(l, 5));
}

// [w, x, y] (dtype, groups, n, k, rows): y[:, g*n..] = w[g*n.., :] x[:, g*k..]; f32 and bf16 only
void grouped_gemm_body(const Launch& l) {
  const auto dtype = static_cast<DType>(l.arg(0));
  const uint32_t groups = u32(l, 1), n = u32(l, 2), k = u32(l, 3), rows = u32(l, 4);
  REDECODE_CHECK(dtype == DType::f32 || dtype == DType::bf16);
  const uint64_t group_bytes = n * matrix_row_bytes(dtype, k);
  for (uint32_t g = 0; g < groups; ++g) {
    const Matrix w{dtype, n, k, l.operands[0] + g * group_bytes};
    gemm(l.exec, w, l.at<const float>(1) + size_t{g} * k, size_t{groups} * k,
         l.at<float>(2) + size_t{g} * n, size_t{groups} * n, rows);
  }
}

RopeShape rope_shape(const Launch& l) {
  return {u32(l, 1), u32(l, 2), u32(l, 3), u32(l, 4), l.real(5), l.arg(6) != 0};
}

// [x, positions] (row_stride, heads, head_dim, offset, rope_dim, theta, inverse, rows)
void rope_body(const Launch& l) {
  rope(l.exec, l.at<float>(0), static_cast<uint64_t>(l.arg(0)), rope_shape(l),
       l.at<const int32_t>(1), u32(l, 7));
}

// As rope, (..., base): positions count from row 0's, and row 0's is the argument `base`. Right as
// long as the argument is that of the step; a graph keeps the one of its capture.
void rope_rebased_body(const Launch& l) {
  const auto rows = u32(l, 7);
  const auto* positions = l.at<const int32_t>(1);
  thread_local std::vector<int32_t> rebased;
  rebased.resize(rows);
  for (uint32_t r = 0; r < rows; ++r)
    rebased[r] = positions[r] - positions[0] + static_cast<int32_t>(l.arg(8));
  rope(l.exec, l.at<float>(0), static_cast<uint64_t>(l.arg(0)), rope_shape(l), rebased.data(),
       rows);
}

// [gate_up, out] (inter, rows)
void swiglu_body(const Launch& l) {
  const uint32_t inter = u32(l, 0);
  const auto* gate_up = l.at<const float>(0);
  swiglu(l.exec, gate_up, uint64_t{2} * inter, gate_up + inter, uint64_t{2} * inter, u32(l, 1),
         inter, l.at<float>(1), inter);
}

// [a, b] (count): a += b
void add_into_body(const Launch& l) {
  add(l.exec, l.at<const float>(0), l.at<const float>(1), static_cast<uint64_t>(l.arg(0)),
      l.at<float>(0));
}

// [logits, temperature, top_k, top_p, min_p, seed, positions, tokens] (vocab, rows)
void sample_body(const Launch& l) {
  const SamplingColumns columns{l.at<const float>(1),    l.at<const int32_t>(2),
                                l.at<const float>(3),    l.at<const float>(4),
                                l.at<const uint64_t>(5), l.at<const int32_t>(6)};
  sample_tokens(l.exec, l.at<const float>(0), u32(l, 0), columns, u32(l, 1), l.at<int32_t>(7));
}

// As sample, (..., base): positions count from row 0's, and row 0's is the argument `base`.
void sample_rebased_body(const Launch& l) {
  const uint32_t rows = u32(l, 1);
  const auto* positions = l.at<const int32_t>(6);
  thread_local std::vector<int32_t> rebased;
  rebased.resize(rows);
  for (uint32_t r = 0; r < rows; ++r)
    rebased[r] = positions[r] - positions[0] + static_cast<int32_t>(l.arg(2));
  const SamplingColumns columns{l.at<const float>(1), l.at<const int32_t>(2),  l.at<const float>(3),
                                l.at<const float>(4), l.at<const uint64_t>(5), rebased.data()};
  sample_tokens(l.exec, l.at<const float>(0), u32(l, 0), columns, rows, l.at<int32_t>(7));
}

}  // namespace

void add_dense_kernels(KernelTable& table, KernelIds& ids) {
  ids.embed = table.add({"embed", 3, 4, embed_body});
  ids.gather_rows = table.add({"gather_rows", 3, 2, gather_rows_body});
  ids.rms_norm = table.add({"rms_norm", 3, 6, rms_norm_body});
  ids.gemm = table.add({"gemm", 3, 6, gemm_body});
  ids.grouped_gemm = table.add({"grouped_gemm", 3, 5, grouped_gemm_body});
  ids.rope = table.add({"rope", 2, 8, rope_body});
  ids.rope_rebased = table.add({"rope_rebased", 2, 9, rope_rebased_body});
  ids.swiglu = table.add({"swiglu", 2, 2, swiglu_body});
  ids.add_into = table.add({"add_into", 2, 1, add_into_body});
  ids.sample = table.add({"sample", 8, 2, sample_body});
  ids.sample_rebased = table.add({"sample_rebased", 8, 3, sample_rebased_body});
}

KernelIds add_exact_kernels(KernelTable& table) {
  KernelIds ids{};
  add_dense_kernels(table, ids);
  add_attention_kernels(table, ids);
  add_indexer_kernels(table, ids);
  add_moe_kernels(table, ids);
  return ids;
}

}  // namespace redecode
