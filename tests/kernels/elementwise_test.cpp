#include "engine/kernels/elementwise.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "engine/kernels/math.h"
#include "engine/kernels/reference.h"
#include "tests/kernels/kernel_inputs.h"

namespace redecode {
namespace {

using testing::canonical_bits;
using testing::encode;
using testing::OwnedMatrix;
using testing::random_floats;
using testing::supported_isas;

// Runs `kernel` on every path and thread count and requires equal bits; returns the result.
template <class Kernel>
std::vector<float> on_every_path(const Kernel& kernel) {
  std::vector<float> first;
  for (const Isa isa : supported_isas()) {
    for (const int threads : {1, 2, 3}) {
      Exec exec(threads, isa);
      const std::vector<float> result = kernel(exec);
      if (first.empty()) first = result;
      INFO(isa_name(isa) << " " << threads << " threads");
      REQUIRE(canonical_bits(result) == canonical_bits(first));
    }
  }
  return first;
}

TEST_CASE("embed copies rows and reads row 0 for tokens outside") {
  const uint32_t rows = 40, cols = 144;
  const std::vector<int32_t> tokens = {0, 39, 7, -1, 40, INT32_MIN, INT32_MAX, 12};
  const uint32_t expected_rows[] = {0, 39, 7, 0, 0, 0, 0, 12};
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::nvfp4}) {
    const OwnedMatrix table = encode(dtype, rows, cols, random_floats(rows * cols, 1));
    const std::vector<float> out = on_every_path([&](Exec& exec) {
      std::vector<float> result(tokens.size() * cols);
      embed(exec, table.view, tokens.data(), static_cast<uint32_t>(tokens.size()), result.data());
      return result;
    });
    for (size_t t = 0; t < tokens.size(); ++t) {
      for (uint32_t c = 0; c < cols; ++c) {
        REQUIRE(out[t * cols + c] == matrix_value(table.view, expected_rows[t], c));
      }
    }
  }
}

TEST_CASE("rms_norm matches the double reference and keeps strides") {
  for (const uint32_t dim : {2u, 64u, 100u, 512u, 5000u}) {
    const uint32_t rows = 9, x_stride = dim + 3, out_stride = dim + 1;
    const std::vector<float> x = random_floats(rows * x_stride, dim, 4.0f);
    const std::vector<float> weight = random_floats(dim, 77);
    for (const bool weighted : {true, false}) {
      const std::vector<float> out = on_every_path([&](Exec& exec) {
        std::vector<float> result(rows * out_stride, -5.0f);
        rms_norm(exec, x.data(), x_stride, weighted ? weight.data() : nullptr, 1e-6f, rows, dim,
                 result.data(), out_stride);
        return result;
      });
      for (uint32_t t = 0; t < rows; ++t) {
        const std::vector<double> exact = reference::rms_norm(
            {x.data() + t * x_stride, dim},
            weighted ? std::span<const float>(weight) : std::span<const float>(), double{1e-6f});
        for (uint32_t d = 0; d < dim; ++d) {
          const double bound = std::fabs(exact[d]) * (dim / 64.0 + 8) * 0x1p-24 + 1e-30;
          REQUIRE(std::fabs(double{out[t * out_stride + d]} - exact[d]) <= bound);
        }
        REQUIRE(out[t * out_stride + dim] == -5.0f);
      }
    }
  }
}

TEST_CASE("rms_norm of zeros and of huge rows stays defined") {
  Exec exec(1);
  std::vector<float> x(64, 0.0f), out(64, 1.0f);
  rms_norm(exec, x.data(), 64, nullptr, 1e-6f, 1, 64, out.data(), 64);
  CHECK(out == std::vector<float>(64, 0.0f));
  x.assign(64, 1e30f);
  rms_norm(exec, x.data(), 64, nullptr, 1e-6f, 1, 64, out.data(), 64);
  CHECK(out == std::vector<float>(64, 0.0f));  // the square overflows, 1 / inf is 0
}

std::vector<float> run_rope(Exec& exec, std::vector<float> x, uint64_t row_stride,
                            const RopeShape& shape, const std::vector<int32_t>& positions) {
  rope(exec, x.data(), row_stride, shape, positions.data(),
       static_cast<uint32_t>(positions.size()));
  return x;
}

TEST_CASE("rope turns pairs by the angle of its position") {
  const std::vector<int32_t> positions = {0, 1, 2, 63, 500, 4095, 100000};
  for (const uint32_t rope_dim : {2u, 10u, 64u, 128u}) {
    for (const bool inverse : {false, true}) {
      const RopeShape shape{3, rope_dim + 6, 4, rope_dim, 10000.0f, inverse};
      const uint64_t stride = 3 * (rope_dim + 6) + 2;
      const std::vector<float> x = random_floats(positions.size() * stride, rope_dim);
      const std::vector<float> out =
          on_every_path([&](Exec& exec) { return run_rope(exec, x, stride, shape, positions); });
      for (size_t t = 0; t < positions.size(); ++t) {
        // f32 angles: one rounding of the frequency and one of the product.
        const double bound = 1e-6 + positions[t] * 0x1p-23;
        for (uint32_t h = 0; h < shape.heads; ++h) {
          const size_t at = t * stride + h * shape.head_dim;
          const std::vector<double> exact =
              reference::rope({x.data() + at, shape.head_dim}, shape, positions[t]);
          for (uint32_t d = 0; d < shape.head_dim; ++d) {
            const bool rotated = d >= 4 && d < 4 + rope_dim;
            REQUIRE(std::fabs(double{out[at + d]} - exact[d]) <= (rotated ? bound : 0.0));
          }
        }
      }
    }
  }
}

TEST_CASE("rope after a change of theta or width uses the new table") {
  Exec exec(1);
  const std::vector<int32_t> positions = {9};
  const std::vector<float> x = random_floats(64, 5);
  const RopeShape a{1, 64, 0, 64, 10000.0f, false}, b{1, 64, 0, 64, 160000.0f, false},
      c{1, 64, 0, 32, 160000.0f, false};
  for (const RopeShape& shape : {a, b, c, a}) {
    const std::vector<float> out = run_rope(exec, x, 64, shape, positions);
    const std::vector<double> exact = reference::rope(x, shape, 9);
    for (size_t d = 0; d < 64; ++d) REQUIRE(std::fabs(double{out[d]} - exact[d]) <= 4e-6);
  }
}

TEST_CASE("rope inverse turns back") {
  Exec exec(1);
  RopeShape shape{2, 64, 0, 64, 10000.0f, false};
  const std::vector<int32_t> positions = {17, 3000};
  const std::vector<float> x = random_floats(2 * 128, 6);
  std::vector<float> y = run_rope(exec, x, 128, shape, positions);
  shape.inverse = true;
  y = run_rope(exec, y, 128, shape, positions);
  for (size_t i = 0; i < x.size(); ++i) REQUIRE(std::fabs(y[i] - x[i]) <= 1e-6f);
}

TEST_CASE("swiglu matches its double reference and the scalar functions") {
  const uint32_t rows = 5, dim = 333;
  const std::vector<float> gate = random_floats(rows * 400, 1, 30.0f);
  const std::vector<float> up = random_floats(rows * 350, 2, 3.0f);
  const std::vector<float> out = on_every_path([&](Exec& exec) {
    std::vector<float> result(rows * 340, 0.0f);
    swiglu(exec, gate.data(), 400, up.data(), 350, rows, dim, result.data(), 340);
    return result;
  });
  for (uint32_t t = 0; t < rows; ++t) {
    for (uint32_t d = 0; d < dim; ++d) {
      const float g = gate[t * 400 + d], u = up[t * 350 + d], o = out[t * 340 + d];
      REQUIRE(canonical_bits(o) == canonical_bits(g * sigmoid_f32(g) * u));
      const double exact = reference::swiglu(double{g}, double{u});
      REQUIRE(std::fabs(double{o} - exact) <= std::fabs(exact) * 6 * 0x1p-24 + 1e-37);
    }
  }
}

TEST_CASE("add is exact to one rounding, in place too") {
  const size_t count = 9001;
  const std::vector<float> a = random_floats(count, 3), b = random_floats(count, 4);
  const std::vector<float> out = on_every_path([&](Exec& exec) {
    std::vector<float> result(count);
    add(exec, a.data(), b.data(), count, result.data());
    std::vector<float> in_place = a;
    add(exec, in_place.data(), b.data(), count, in_place.data());
    REQUIRE(in_place == result);
    return result;
  });
  for (size_t i = 0; i < count; ++i) REQUIRE(out[i] == a[i] + b[i]);
}

TEST_CASE("hadamard matches its definition and is its own inverse") {
  for (const uint32_t dim : {1u, 2u, 8u, 64u, 128u, 256u}) {
    const uint32_t vectors = 11;
    const std::vector<float> x = random_floats(vectors * dim, dim + 9);
    const std::vector<float> out = on_every_path([&](Exec& exec) {
      std::vector<float> result = x;
      hadamard(exec, result.data(), vectors, dim);
      return result;
    });
    for (uint32_t v = 0; v < vectors; ++v) {
      const std::vector<double> exact = reference::hadamard({x.data() + v * dim, dim});
      for (uint32_t d = 0; d < dim; ++d) {
        REQUIRE(std::fabs(double{out[v * dim + d]} - exact[d]) <= 2e-6);
      }
    }
    std::vector<float> back = out;
    Exec exec(1);
    hadamard(exec, back.data(), vectors, dim);
    for (size_t i = 0; i < x.size(); ++i) REQUIRE(std::fabs(back[i] - x[i]) <= 2e-6f);
  }
}

}  // namespace
}  // namespace redecode
