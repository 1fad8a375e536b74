#include "engine/kernels/moe.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>

#include "engine/kernels/dot.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/math.h"
#include "tests/kernels/paths.h"

namespace redecode {
namespace {

struct Routing {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routing route(Exec& exec, const std::vector<float>& logits, const float* bias, uint32_t experts,
              uint32_t k, float scaling) {
  const auto rows = static_cast<uint32_t>(logits.size() / experts);
  Routing out{std::vector<int32_t>(rows * k), std::vector<float>(rows * k)};
  moe_route(exec, logits.data(), bias, rows, experts, k, scaling, out.ids.data(),
            out.weights.data());
  return out;
}

TEST_CASE("routing picks the best of score + bias, best first, and weighs by score alone") {
  Exec exec(2);
  const uint32_t experts = 24, k = 6;
  const std::vector<float> logits = test::random_floats(1, 16 * experts, 4.0f);
  const std::vector<float> bias = test::random_floats(2, experts);
  const Routing out = route(exec, logits, bias.data(), experts, k, 1.5f);
  for (uint32_t row = 0; row < 16; ++row) {
    std::vector<double> score;
    for (uint32_t e = 0; e < experts; ++e) {
      score.push_back(
          std::sqrt(std::log1p(std::exp(static_cast<double>(logits[row * experts + e])))));
    }
    std::vector<int32_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
      return score[x] + static_cast<double>(bias[x]) > score[y] + static_cast<double>(bias[y]);
    });
    double sum = 0.0;
    for (uint32_t s = 0; s < k; ++s) sum += score[static_cast<size_t>(order[s])];
    for (uint32_t s = 0; s < k; ++s) {
      CHECK(out.ids[row * k + s] == order[s]);
      const double weight = score[static_cast<size_t>(order[s])] / sum * 1.5;
      CHECK(std::fabs(static_cast<double>(out.weights[row * k + s]) - weight) < 1e-6);
    }
  }
}

TEST_CASE("routing breaks ties to the lower expert and puts NaN last") {
  Exec exec;
  CHECK(route(exec, {1, 2, 1, 2, 1}, nullptr, 5, 3, 1.0f).ids == std::vector<int32_t>{1, 3, 0});
  CHECK(route(exec, {NAN, -50, NAN, 2, 1}, nullptr, 5, 4, 1.0f).ids ==
        std::vector<int32_t>{3, 4, 1, 0});
  const float bias[] = {0, 0, 5};
  const Routing biased = route(exec, {3, 3, 3}, bias, 3, 2, 1.0f);
  CHECK(biased.ids == std::vector<int32_t>{2, 0});
  CHECK(biased.weights == std::vector<float>{0.5f, 0.5f});
}

struct MoeCase {
  uint32_t rows, k, dim, inter, count;
  std::vector<std::byte> buffer;
  Experts experts;
  std::vector<float> x, weights;
  std::vector<int32_t> ids;

  MoeCase(DType dtype, uint32_t row_count, uint32_t slots, uint32_t d, uint32_t i, uint32_t n)
      : rows(row_count), k(slots), dim(d), inter(i), count(n) {
    const uint64_t in_bytes = matrix_bytes(dtype, inter, dim);
    const uint64_t out_bytes = matrix_bytes(dtype, dim, inter);
    buffer.resize(count * (2 * in_bytes + out_bytes));
    for (uint32_t e = 0; e < count; ++e) {
      encode_matrix(dtype, inter, dim, test::random_floats(10 * e, uint64_t{inter} * dim, 0.3f),
                    buffer.data() + e * in_bytes);
      encode_matrix(dtype, inter, dim, test::random_floats(10 * e + 1, uint64_t{inter} * dim, 0.3f),
                    buffer.data() + (count + e) * in_bytes);
      encode_matrix(dtype, dim, inter, test::random_floats(10 * e + 2, uint64_t{inter} * dim, 0.3f),
                    buffer.data() + 2 * count * in_bytes + e * out_bytes);
    }
    experts.gate = {dtype, inter, dim, buffer.data()};
    experts.up = {dtype, inter, dim, buffer.data() + count * in_bytes};
    experts.down = {dtype, dim, inter, buffer.data() + 2 * count * in_bytes};
    experts.gate_stride_bytes = experts.up_stride_bytes = in_bytes;
    experts.down_stride_bytes = out_bytes;
    experts.count = count;
    x = test::random_floats(5, uint64_t{rows} * dim);
    weights = test::random_floats(6, uint64_t{rows} * k);
    RandomSequence random(7);
    for (uint32_t r = 0; r < rows; ++r) {
      const uint64_t first = random.below(count);
      for (uint32_t s = 0; s < k; ++s) ids.push_back(static_cast<int32_t>((first + 3 * s) % count));
    }
  }
  std::vector<float> run(Exec& exec, uint32_t first, uint32_t n) const {
    std::vector<float> scratch(moe_scratch_floats(n, k, dim, inter) + 1, 42.0f);
    std::vector<float> out(uint64_t{n} * dim, 9.0f);
    moe_experts(exec, experts, x.data() + uint64_t{first} * dim, n, k, ids.data() + first * k,
                weights.data() + first * k, scratch.data(), out.data());
    CHECK(scratch.back() == 42.0f);
    return out;
  }
  Matrix of(Matrix m, uint64_t stride_bytes, uint32_t e) const {
    m.data += e * stride_bytes;
    return m;
  }
  std::vector<double> reference_row(uint32_t row) const {
    std::vector<double> out(dim, 0.0);
    for (uint32_t s = 0; s < k; ++s) {
      const auto e = static_cast<uint32_t>(ids[row * k + s]);
      std::vector<double> act;
      for (uint32_t i = 0; i < inter; ++i) {
        double gate = 0.0, up = 0.0;
        for (uint32_t d = 0; d < dim; ++d) {
          const auto value = static_cast<double>(x[uint64_t{row} * dim + d]);
          gate += value * static_cast<double>(
                              matrix_value(of(experts.gate, experts.gate_stride_bytes, e), i, d));
          up += value *
                static_cast<double>(matrix_value(of(experts.up, experts.up_stride_bytes, e), i, d));
        }
        act.push_back(gate / (1.0 + std::exp(-gate)) * up);
      }
      for (uint32_t d = 0; d < dim; ++d) {
        double down = 0.0;
        for (uint32_t i = 0; i < inter; ++i) {
          down += act[i] * static_cast<double>(
                               matrix_value(of(experts.down, experts.down_stride_bytes, e), d, i));
        }
        out[d] += static_cast<double>(weights[row * k + s]) * down;
      }
    }
    return out;
  }
};

constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::nvfp4};

TEST_CASE("routed experts are close to the double reference in every weight type") {
  Exec exec;
  for (const DType dtype : kDTypes) {
    const MoeCase c(dtype, 5, 3, 96, 48, 8);
    const std::vector<float> out = c.run(exec, 0, 5);
    for (uint32_t row = 0; row < 5; ++row) {
      const std::vector<float> got(out.begin() + row * 96, out.begin() + (row + 1) * 96);
      CHECK(test::largest_error(got, c.reference_row(row)) < 2e-5);
    }
  }
}

TEST_CASE("routed experts have the same bits on every path, and a row alone as among 63 others") {
  for (const DType dtype : kDTypes) {
    const MoeCase c(dtype, 64, 2, 64, 32, 8);
    CHECK(test::path_that_differs([&](Exec& exec) { return c.run(exec, 0, 64); }) == "");
    Exec exec;
    const std::vector<float> together = c.run(exec, 0, 64);
    for (const uint32_t row : {0u, 30u, 63u}) {
      CHECK(test::bits_of(c.run(exec, row, 1)) == test::bits_of({together.data() + row * 64, 64}));
    }
  }
}

TEST_CASE("routed experts add slots in slot order, one fma a term; wrong ids add nothing") {
  MoeCase c(DType::bf16, 1, 4, 64, 32, 16);
  Exec exec;
  c.ids[2] = -1;
  const std::vector<float> out = c.run(exec, 0, 1);
  std::vector<float> expected(64, 0.0f), gate(32), up(32), act(32), down(64);
  for (uint32_t s : {0u, 1u, 3u}) {
    const auto e = static_cast<uint32_t>(c.ids[s]);
    gemm(exec, c.of(c.experts.gate, c.experts.gate_stride_bytes, e), c.x.data(), 64, gate.data(),
         32, 1);
    gemm(exec, c.of(c.experts.up, c.experts.up_stride_bytes, e), c.x.data(), 64, up.data(), 32, 1);
    swiglu(exec, gate.data(), 32, up.data(), 32, 1, 32, act.data(), 32);
    gemm(exec, c.of(c.experts.down, c.experts.down_stride_bytes, e), act.data(), 32, down.data(),
         64, 1);
    for (size_t d = 0; d < 64; ++d) expected[d] = fma_f32(c.weights[s], down[d], expected[d]);
  }
  CHECK(test::bits_of(out) == test::bits_of(expected));
  c.ids[2] = 16;
  CHECK(test::bits_of(c.run(exec, 0, 1)) == test::bits_of(expected));
}

}  // namespace
}  // namespace redecode
