#include "engine/kernels/dot.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <span>

#include "engine/kernels/convert.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/reference.h"
#include "tests/kernels/kernel_inputs.h"

namespace redecode {
namespace {

using testing::canonical_bits;
using testing::encode;
using testing::OwnedMatrix;
using testing::random_bit_floats;
using testing::random_floats;
using testing::supported_isas;

constexpr DType kAllTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::nvfp4};

// The contract, word for word.
float contract_dot(std::span<const float> a, std::span<const float> b) {
  float lane[32] = {};
  const size_t padded = (a.size() + 63) / 64 * 64;
  for (size_t i = 0; i < padded / 64; ++i) {
    for (size_t l = 0; l < 32; ++l) {
      for (const size_t e : {64 * i + 2 * l, 64 * i + 2 * l + 1}) {
        lane[l] = std::fma(e < a.size() ? a[e] : 0.0f, e < a.size() ? b[e] : 0.0f, lane[l]);
      }
    }
  }
  for (const size_t m : {16, 8, 4, 2, 1}) {
    float next[32];
    for (size_t l = 0; l < 32; ++l) next[l] = lane[l] + lane[l ^ m];
    std::copy(next, next + 32, lane);
  }
  return lane[0];
}

std::vector<float> row_of(const Matrix& m, uint32_t row) {
  std::vector<float> out(m.cols);
  for (uint32_t c = 0; c < m.cols; ++c) out[c] = matrix_value(m, row, c);
  return out;
}

std::vector<float> run_gemm(Exec& exec, const Matrix& w, const std::vector<float>& x, uint32_t rows,
                            size_t x_stride, size_t y_stride) {
  std::vector<float> y(rows * y_stride, -77.0f);
  gemm(exec, w, x.data(), x_stride, y.data(), y_stride, rows);
  return y;
}

TEST_CASE("dot follows the contract for every length on every instruction set") {
  for (size_t count = 0; count <= 300; ++count) {
    const std::vector<float> a = random_floats(count, 10 + count);
    const std::vector<float> b = random_floats(count, 1000 + count);
    std::vector<uint16_t> a16(count);
    std::vector<float> a16_values(count);
    for (size_t i = 0; i < count; ++i) {
      a16[i] = bf16_from_f32(a[i]);
      a16_values[i] = f32_from_bf16(a16[i]);
    }
    const uint32_t expected = canonical_bits(contract_dot(a, b));
    const uint32_t expected16 = canonical_bits(contract_dot(a16_values, b));
    for (const Isa isa : supported_isas()) {
      REQUIRE(canonical_bits(dot_f32(isa, a.data(), b.data(), count)) == expected);
      REQUIRE(canonical_bits(dot_bf16(isa, a16.data(), b.data(), count)) == expected16);
    }
    REQUIRE(std::fabs(double{contract_dot(a, b)} - reference::dot(a, b)) <=
            (static_cast<double>(count) / 32 + 6) * 0x1p-24 * reference::dot_magnitude(a, b));
  }
}

TEST_CASE("dot agrees on any bits: subnormals, infinities, NaN, signed zeros") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const size_t count = 2 + seed * 2;
    std::vector<float> a = random_bit_floats(count, 2 * seed + 1);
    std::vector<float> b = random_bit_floats(count, 2 * seed + 2);
    if (seed % 3 == 0) {  // products below the smallest subnormal, so that lanes become -0
      for (float& v : a) v = -1e-30f;
      for (float& v : b) v = 1e-30f;
    }
    if (seed % 3 == 1) {
      for (size_t i = 0; i < count; ++i) {
        a[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(a[i]) & 0x80ffffffu);
        b[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(b[i]) & 0x80ffffffu) | 0x3f000000u);
      }
    }
    const uint32_t expected = canonical_bits(contract_dot(a, b));
    for (const Isa isa : supported_isas()) {
      REQUIRE(canonical_bits(dot_f32(isa, a.data(), b.data(), count)) == expected);
    }
  }
}

TEST_CASE("gemm is the contract's dot for every type, shape, batch, thread count and path") {
  struct Shape {
    uint32_t rows, cols;
  };
  for (const Shape shape : {Shape{1, 16}, {7, 48}, {8, 64}, {17, 80}, {33, 256}, {130, 144}}) {
    for (const DType dtype : kAllTypes) {
      const OwnedMatrix w =
          encode(dtype, shape.rows, shape.cols, random_floats(shape.rows * shape.cols, 21, 3.0f));
      const size_t x_stride = shape.cols + 3, y_stride = shape.rows + 5;
      for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u}) {
        const std::vector<float> x = random_floats(rows * x_stride, 22 + rows);
        std::vector<float> expected(rows * y_stride, -77.0f);
        for (uint32_t n = 0; n < shape.rows; ++n) {
          const std::vector<float> row = row_of(w.view, n);
          for (uint32_t t = 0; t < rows; ++t) {
            expected[t * y_stride + n] = contract_dot(row, {x.data() + t * x_stride, shape.cols});
          }
        }
        for (const Isa isa : supported_isas()) {
          for (const int threads : {1, 2, 3}) {
            Exec exec(threads, isa);
            INFO(isa_name(isa) << " " << threads << " threads " << shape.rows << "x" << shape.cols
                               << " type " << static_cast<int>(dtype) << " batch " << rows);
            REQUIRE(canonical_bits(run_gemm(exec, w.view, x, rows, x_stride, y_stride)) ==
                    canonical_bits(expected));
          }
        }
      }
    }
  }
}

TEST_CASE("gemm agrees on every code and scale of the small formats") {
  for (const DType dtype : {DType::bf16, DType::fp8, DType::nvfp4}) {
    for (uint64_t seed = 0; seed < 24; ++seed) {
      const uint32_t rows = 136, cols = 208;
      OwnedMatrix w = encode(dtype, rows, cols, random_floats(rows * cols, 31));
      RandomSequence random(seed, 5);
      const uint64_t words = matrix_bytes(dtype, rows, cols) / 4;
      for (uint64_t i = 0; i < words; ++i) w.words[i] = static_cast<uint32_t>(random.next());
      uint8_t* bytes = reinterpret_cast<uint8_t*>(w.words.data());
      // Most seeds keep NaN rare, so that it does not hide everything else; four scales of fp8.
      const uint64_t codes = rows * matrix_row_bytes(dtype, cols);
      if (dtype == DType::fp8) {
        for (uint64_t i = 0; i < codes; ++i) {
          if ((bytes[i] & 0x7f) == 0x7f && seed % 4 != 0) bytes[i] = 0x80;
        }
        for (uint64_t i = 0; i < 4; ++i) bytes[codes + i] = static_cast<uint8_t>(seed * 11 + i);
      }
      if (dtype == DType::nvfp4) {
        for (uint64_t i = codes; i < codes + uint64_t{rows} * cols / 16; ++i) {
          if ((bytes[i] & 0x7f) == 0x7f && seed % 4 != 0) bytes[i] = 0x01;
        }
        const float tensor_scale = seed % 2 == 0 ? 1e-3f : 1e-40f;
        std::memcpy(bytes + matrix_bytes(dtype, rows, cols) - 4, &tensor_scale, 4);
      }
      for (const uint32_t batch : {1u, 6u}) {
        const std::vector<float> x = random_floats(batch * cols, 40 + seed);
        std::vector<float> expected(batch * rows);
        for (uint32_t n = 0; n < rows; ++n) {
          const std::vector<float> row = row_of(w.view, n);
          for (uint32_t t = 0; t < batch; ++t) {
            expected[t * rows + n] = contract_dot(row, {x.data() + t * cols, cols});
          }
        }
        for (const Isa isa : supported_isas()) {
          Exec exec(1, isa);
          INFO(isa_name(isa) << " type " << static_cast<int>(dtype) << " seed " << seed);
          REQUIRE(canonical_bits(run_gemm(exec, w.view, x, batch, cols, rows)) ==
                  canonical_bits(expected));
        }
      }
    }
  }
}

TEST_CASE("gemm stays within the rounding bound of the double reference") {
  const uint32_t rows = 40, cols = 1024;
  const std::vector<float> x = random_floats(cols, 51);
  for (const DType dtype : kAllTypes) {
    const OwnedMatrix w = encode(dtype, rows, cols, random_floats(rows * cols, 52));
    Exec exec(1);
    const std::vector<float> y = run_gemm(exec, w.view, x, 1, cols, rows);
    const std::vector<double> exact = reference::gemv(w.view, x);
    for (uint32_t n = 0; n < rows; ++n) {
      const double bound =
          (cols / 32.0 + 6) * 0x1p-24 * reference::dot_magnitude(row_of(w.view, n), x);
      REQUIRE(std::fabs(double{y[n]} - exact[n]) <= bound);
    }
  }
}

TEST_CASE("A row of gemm does not depend on its batch") {
  const uint32_t rows = 96, cols = 512, batch = 64;
  const std::vector<float> x = random_floats(batch * cols, 61);
  for (const DType dtype : kAllTypes) {
    const OwnedMatrix w = encode(dtype, rows, cols, random_floats(rows * cols, 62));
    Exec exec(2);
    const std::vector<float> together = run_gemm(exec, w.view, x, batch, cols, rows);
    for (uint32_t t = 0; t < batch; ++t) {
      const std::vector<float> alone_x(x.begin() + t * cols, x.begin() + (t + 1) * cols);
      const std::vector<float> alone = run_gemm(exec, w.view, alone_x, 1, cols, rows);
      const std::vector<float> part(together.begin() + t * rows, together.begin() + (t + 1) * rows);
      REQUIRE(canonical_bits(alone) == canonical_bits(part));
    }
  }
}

TEST_CASE("Exec covers every index once, in whole grains, nested calls included") {
  for (const int threads : {1, 2, 3, 5}) {
    Exec exec(threads);
    for (const size_t count : {0, 1, 7, 8, 9, 64, 1000}) {
      for (const size_t grain : {1, 8, 100}) {
        std::vector<int> seen(count, 0);
        std::vector<char> starts(count + 1, 0);
        exec.parallel(count, grain, [&](size_t begin, size_t end) {
          starts[begin] = 1;
          for (size_t i = begin; i < end; ++i) {
            exec.parallel(1, 1, [&](size_t, size_t) { ++seen[i]; });
          }
          exec.parallel(4, 1, [&](size_t, size_t) {});
        });
        REQUIRE(seen == std::vector<int>(count, 1));
        for (size_t i = 0; i < count; ++i) REQUIRE((starts[i] == 0 || i % grain == 0));
      }
    }
  }
}

TEST_CASE("Exec survives many short jobs") {
  Exec exec(3);
  uint64_t sum = 0;
  for (uint64_t round = 0; round < 2000; ++round) {
    std::vector<uint64_t> part(30, 0);
    exec.parallel(part.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) part[i] = round + i;
    });
    for (const uint64_t v : part) sum += v;
  }
  CHECK(sum == 30ull * (1999 * 2000 / 2) + 2000ull * (29 * 30 / 2));
}

TEST_CASE("A kernel table gives ids, names and float arguments back") {
  KernelTable table;
  const KernelId a = table.add({"gemm", 3, 2, nullptr});
  const KernelId b = table.add({"rope", 1, 4, nullptr});
  CHECK(a != b);
  CHECK(table.find("rope") == b);
  CHECK(table[a].operand_count == 3);
  CHECK(table.size() == 2);
  Exec exec(1);
  const Arg args[] = {real_arg(-0.1f), real_arg(1e-6f, ArgKind::reduction)};
  const Launch launch{{}, args, exec};
  CHECK(launch.real(0) == -0.1f);
  CHECK(launch.real(1) == 1e-6f);
  CHECK(args[1].kind == ArgKind::reduction);
}

}  // namespace
}  // namespace redecode
