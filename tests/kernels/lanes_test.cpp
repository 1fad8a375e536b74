#include "engine/kernels/lanes.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "engine/kernels/convert.h"
#include "engine/kernels/dot.h"
#include "tests/kernels/paths.h"

namespace redecode {
namespace {

constexpr uint32_t kDims[] = {2, 16, 30, 62, 64, 66, 100, 128, 130, 512};

// Random values with zeros of both signs, subnormals, infinities and NaN among them.
std::vector<float> hard_floats(uint64_t seed, size_t count) {
  const float specials[] = {0.0f,
                            -0.0f,
                            1e-42f,
                            -1e-42f,
                            1e-30f,
                            1e30f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> values = test::random_floats(seed, count);
  RandomSequence random(seed + 1);
  for (float& value : values) {
    if (random.below(50) == 0) value = specials[random.below(9)];
  }
  return values;
}

TEST_CASE("lane layout puts an element's lane at its place") {
  for (uint32_t d = 0; d < 256; ++d) {
    CHECK(lane_place(d) / 64 == d / 64);
    CHECK(lane_place(d) % 32 == d % 64 / 2);
    CHECK(lane_place(d) % 64 / 32 == d % 2);
  }
  CHECK(lane_padded(1) == 64);
  CHECK(lane_padded(64) == 64);
  CHECK(lane_padded(65) == 128);
}

TEST_CASE("lane conversions are exact on every path") {
  std::vector<uint8_t> bytes(512);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  std::vector<uint16_t> halves;
  RandomSequence random(3);
  for (int i = 0; i < 512; ++i) halves.push_back(static_cast<uint16_t>(random.next()));
  const std::vector<float> values = hard_floats(4, 512);
  for (const Isa isa : test::supported_isas()) {
    const LaneKernels& lanes = lane_kernels(isa);
    for (const uint32_t dim : kDims) {
      std::vector<float> f32(lane_padded(dim), 9.0f), bf16 = f32, e4m3 = f32, e2m1 = f32;
      lanes.from_f32(values.data(), dim, f32.data());
      lanes.from_bf16(halves.data(), dim, bf16.data());
      lanes.from_e4m3(bytes.data(), dim, e4m3.data());
      lanes.from_e2m1(bytes.data(), dim, e2m1.data());
      std::vector<float> expected[4];
      for (auto& e : expected) e.resize(lane_padded(dim));
      for (uint32_t d = 0; d < dim; ++d) {
        expected[0][lane_place(d)] = values[d];
        expected[1][lane_place(d)] = f32_from_bf16(halves[d]);
        expected[2][lane_place(d)] = f32_from_e4m3(bytes[d]);
        expected[3][lane_place(d)] =
            f32_from_e2m1(static_cast<uint8_t>(d % 2 == 0 ? bytes[d / 2] & 15 : bytes[d / 2] >> 4));
      }
      INFO(isa_name(isa) << ", dim " << dim);
      CHECK(test::bits_of(f32) == test::bits_of(expected[0]));
      CHECK(test::bits_of(bf16) == test::bits_of(expected[1]));
      CHECK(test::bits_of(e4m3) == test::bits_of(expected[2]));
      CHECK(test::bits_of(e2m1) == test::bits_of(expected[3]));
    }
  }
}

TEST_CASE("lane dots are the contract's dot products on every path") {
  for (const uint32_t dim : kDims) {
    for (const uint32_t count : {1u, 3u, 4u, 7u, 16u, 17u, 64u}) {
      const uint32_t heads = 1 + count % 4;
      const std::vector<float> q = test::random_floats(dim, uint64_t{heads} * dim);
      const std::vector<float> keys = hard_floats(count, uint64_t{count} * dim);
      std::vector<float> expected;
      for (uint32_t h = 0; h < heads; ++h) {
        for (uint32_t j = 0; j < count; ++j) {
          expected.push_back(dot_f32(Isa::plain, q.data() + uint64_t{h} * dim,
                                     keys.data() + uint64_t{j} * dim, dim));
        }
      }
      for (const Isa isa : test::supported_isas()) {
        const LaneKernels& lanes = lane_kernels(isa);
        const uint32_t padded = lane_padded(dim);
        std::vector<float> lane_q(uint64_t{heads} * padded), lane_keys(uint64_t{count} * padded);
        for (uint32_t h = 0; h < heads; ++h) {
          lanes.from_f32(q.data() + uint64_t{h} * dim, dim, lane_q.data() + uint64_t{h} * padded);
        }
        for (uint32_t j = 0; j < count; ++j) {
          lanes.from_f32(keys.data() + uint64_t{j} * dim, dim,
                         lane_keys.data() + uint64_t{j} * padded);
        }
        std::vector<float> out(uint64_t{heads} * count);
        lanes.dots(lane_q.data(), heads, lane_keys.data(), count, padded, out.data(), count);
        INFO(isa_name(isa) << ", dim " << dim << ", keys " << count);
        REQUIRE(test::bits_of(out) == test::bits_of(expected));
      }
    }
  }
}

TEST_CASE("element loops have the plain path's bits") {
  for (const uint32_t count : {1u, 5u, 8u, 16u, 23u, 64u, 100u}) {
    const std::vector<float> x = hard_floats(count, 3 * count),
                             y = hard_floats(count + 100, 3 * count);
    const std::vector<float> weights = test::random_floats(9, 3 * 3);
    std::vector<const float*> values;
    for (uint32_t j = 0; j < 3; ++j) values.push_back(y.data() + j * count);
    std::vector<uint32_t> expected;
    for (const Isa isa : test::supported_isas()) {
      const LaneKernels& lanes = lane_kernels(isa);
      std::vector<float> all = x, part = x;
      all.push_back(lanes.shift_scores(all.data(), count, 0.3f));
      lanes.combine(part.data(), 0.4f, y.data(), 0.7f, count);
      lanes.fma(x.data(), y.data(), part.data() + count, count);
      lanes.axpy(1.5f, y.data(), part.data() + 2 * count, count);
      all.insert(all.end(), part.begin(), part.end());
      std::vector<float> acc(3 * count), sum(3);
      lanes.weigh(weights.data(), 3, 3, values.data(), 3, count, acc.data(), sum.data());
      all.insert(all.end(), acc.begin(), acc.end());
      all.insert(all.end(), sum.begin(), sum.end());
      std::vector<float> logits(count);
      lanes.index_logits(x.data(), count, 3, weights.data(), y.data(), count, logits.data());
      all.insert(all.end(), logits.begin(), logits.end());
      if (expected.empty()) expected = test::bits_of(all);
      INFO(isa_name(isa) << ", count " << count);
      CHECK(test::bits_of(all) == expected);
    }
  }
}

TEST_CASE("index logits keep NaN and drop negative products on every path") {
  std::vector<float> products(20, -2.0f), scales(20, 0.5f), logits(20);
  products[3] = products[17] = std::numeric_limits<float>::quiet_NaN();
  products[4] = 3.0f;
  const float weight = 2.0f;
  for (const Isa isa : test::supported_isas()) {
    lane_kernels(isa).index_logits(products.data(), 20, 1, &weight, scales.data(), 20,
                                   logits.data());
    for (size_t j = 0; j < 20; ++j) {
      INFO(isa_name(isa) << ", entry " << j);
      CHECK(std::isnan(logits[j]) == (j == 3 || j == 17));
      if (!std::isnan(logits[j])) CHECK(logits[j] == (j == 4 ? 3.0f : 0.0f));
    }
  }
}

}  // namespace
}  // namespace redecode
