#include "engine/kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/kernels/dot.h"
#include "engine/kernels/elementwise_isa.h"
#include "engine/kernels/math_inline.h"
#include "engine/kernels/vector_math.h"
#include "traces/check.h"

namespace redecode {
namespace {

const ElementKernels& kernels_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return kElementsAvx512;
  if (isa == Isa::avx2) return kElementsAvx2;
#endif
  return kElementsPlain;
}

// Below this many elements a second thread costs more than it brings.
constexpr size_t kGrainElements = 4096;

size_t row_grain(uint64_t elements_a_row) {
  return elements_a_row >= kGrainElements ? 1 : kGrainElements / (elements_a_row + 1) + 1;
}

template <class Body>
void for_rows(Exec& exec, uint32_t rows, uint64_t elements_a_row, const Body& body) {
  const auto range = [&body](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) body(t);
  };
  if (exec.threads() == 1) return range(0, rows);
  exec.parallel(rows, row_grain(elements_a_row), range);
}

// Rotation tables of one thread, kept from call to call while theta and rope_dim stay.
struct RopeTables {
  float theta = 0.0f;
  uint32_t rope_dim = 0;
  std::vector<float> frequencies, angles, sines, cosines, cc, ss;

  void prepare(const RopeShape& shape) {
    if (theta == shape.theta && rope_dim == shape.rope_dim) return;
    theta = shape.theta;
    rope_dim = shape.rope_dim;
    const uint32_t pairs = rope_dim / 2;
    frequencies.resize(pairs);
    for (std::vector<float>* v : {&angles, &sines, &cosines}) v->resize(pairs);
    cc.resize(rope_dim);
    ss.resize(rope_dim);
    for (uint32_t i = 0; i < pairs; ++i) {
      frequencies[i] = math_inline::rope_frequency_value(theta, i, rope_dim);
    }
  }

  void turn_to(const ElementKernels& kernels, int32_t position, bool inverse) {
    const size_t pairs = frequencies.size();
    const float p = static_cast<float>(position);
    for (size_t i = 0; i < pairs; ++i) angles[i] = p * frequencies[i];
    kernels.sincos(angles.data(), pairs, sines.data(), cosines.data());
    for (size_t i = 0; i < pairs; ++i) {
      const float s = inverse ? -sines[i] : sines[i];
      cc[2 * i] = cc[2 * i + 1] = cosines[i];
      ss[2 * i] = -s;
      ss[2 * i + 1] = s;
    }
  }
};

}  // namespace

void exp_array(Isa isa, const float* x, size_t count, float* out) {
  kernels_of(isa).exp(x, count, out);
}

void swiglu_array(Isa isa, const float* gate, const float* up, size_t count, float* out) {
  kernels_of(isa).swiglu(gate, up, count, out);
}

void sincos_array(Isa isa, const float* x, size_t count, float* sin_out, float* cos_out) {
  kernels_of(isa).sincos(x, count, sin_out, cos_out);
}

void embed(Exec& exec, const Matrix& table, const int32_t* tokens, uint32_t rows, float* out) {
  REDECODE_CHECK_OP(table.rows, >, 0u);
  const ElementKernels& kernels = kernels_of(exec.isa());
  const uint64_t row_bytes = matrix_row_bytes(table.dtype, table.cols);
  for_rows(exec, rows, table.cols, [&](size_t t) {
    const uint32_t token = static_cast<uint32_t>(tokens[t]);  // negative ones become large
    const uint32_t row = token < table.rows ? token : 0;
    const std::byte* values = table.data + row * row_bytes;
    float* to = out + t * table.cols;
    if (table.dtype == DType::f32) {
      std::memcpy(to, values, row_bytes);
    } else if (table.dtype == DType::bf16) {
      kernels.widen_bf16(reinterpret_cast<const uint16_t*>(values), table.cols, to);
    } else {
      for (uint32_t c = 0; c < table.cols; ++c) to[c] = matrix_value(table, row, c);
    }
  });
}

void rms_norm(Exec& exec, const float* x, uint64_t x_stride, const float* weight, float eps,
              uint32_t rows, uint32_t dim, float* out, uint64_t out_stride) {
  const ElementKernels& kernels = kernels_of(exec.isa());
  for_rows(exec, rows, dim, [&](size_t t) {
    const float* from = x + t * x_stride;
    const float mean = dot_f32(exec.isa(), from, from, dim) / static_cast<float>(dim);
    kernels.scale(from, 1.0f / std::sqrt(mean + eps), weight, dim, out + t * out_stride);
  });
}

void rope(Exec& exec, float* x, uint64_t row_stride, const RopeShape& shape,
          const int32_t* positions, uint32_t rows) {
  REDECODE_CHECK_OP(shape.rope_dim % 2, ==, 0u);
  REDECODE_CHECK_OP(uint64_t{shape.offset} + shape.rope_dim, <=, uint64_t{shape.head_dim});
  const ElementKernels& kernels = kernels_of(exec.isa());
  const uint64_t elements = uint64_t{shape.heads + 4} * shape.rope_dim;
  for_rows(exec, rows, elements, [&](size_t t) {
    thread_local RopeTables tables;
    tables.prepare(shape);
    tables.turn_to(kernels, positions[t], shape.inverse);
    float* row = x + t * row_stride + shape.offset;
    for (uint32_t h = 0; h < shape.heads; ++h) {
      kernels.rotate(row + uint64_t{h} * shape.head_dim, tables.cc.data(), tables.ss.data(),
                     shape.rope_dim);
    }
  });
}

void swiglu(Exec& exec, const float* gate, uint64_t gate_stride, const float* up,
            uint64_t up_stride, uint32_t rows, uint32_t dim, float* out, uint64_t out_stride) {
  const ElementKernels& kernels = kernels_of(exec.isa());
  for_rows(exec, rows, uint64_t{dim} * 4, [&](size_t t) {
    kernels.swiglu(gate + t * gate_stride, up + t * up_stride, dim, out + t * out_stride);
  });
}

void add(Exec& exec, const float* a, const float* b, uint64_t count, float* out) {
  const ElementKernels& kernels = kernels_of(exec.isa());
  if (exec.threads() == 1) return kernels.add(a, b, count, out);
  exec.parallel(count, kGrainElements, [&](size_t begin, size_t end) {
    kernels.add(a + begin, b + begin, end - begin, out + begin);
  });
}

void hadamard(Exec& exec, float* x, uint32_t vectors, uint32_t dim) {
  REDECODE_CHECK(std::has_single_bit(dim));
  const ElementKernels& kernels = kernels_of(exec.isa());
  const float factor = 1.0f / std::sqrt(static_cast<float>(dim));
  for_rows(exec, vectors, uint64_t{dim} * 4, [&](size_t v) {
    float* vector = x + v * dim;
    kernels.hadamard(vector, dim);
    kernels.scale(vector, factor, nullptr, dim, vector);
  });
}

}  // namespace redecode
