#include "engine/kernels/attention.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "engine/kernels/convert.h"
#include "engine/kernels/dot.h"
#include "engine/kernels/math.h"
#include "engine/kernels/reference_attention.h"
#include "tests/kernels/paged_fixture.h"
#include "tests/kernels/paths.h"

namespace redecode {
namespace {

using test::PagedFixture;

std::vector<uint16_t> random_bf16(uint64_t seed, size_t count) {
  std::vector<uint16_t> values;
  for (const float value : test::random_floats(seed, count)) values.push_back(bf16_from_f32(value));
  return values;
}

std::vector<float> slice(const std::vector<float>& values, uint64_t at, uint64_t count) {
  return {values.begin() + static_cast<int64_t>(at),
          values.begin() + static_cast<int64_t>(at + count)};
}

struct GqaCase {
  GqaShape shape;
  PagedFixture paged;
  std::vector<float> q, k, v;

  GqaCase(const GqaShape& s, uint32_t rows, uint32_t page_size, uint32_t longest)
      : shape(s),
        paged(11, rows, page_size, longest),
        q(test::random_floats(1, uint64_t{rows} * s.heads * s.head_dim, 2.0f)),
        k(test::random_floats(2, paged.slot_count() * s.kv_heads * s.head_dim)),
        v(test::random_floats(3, paged.slot_count() * s.kv_heads * s.head_dim)) {}
  std::vector<float> run(Exec& exec) const {
    std::vector<float> out(q.size(), 7.0f);
    gqa_attention(exec, shape, paged.view(), q.data(), k.data(), v.data(), out.data());
    return out;
  }
};

std::vector<GqaCase> gqa_cases() {
  const float scale = 0.125f;
  return {{{4, 2, 64, scale, 64}, 5, 16, 200}, {{8, 8, 64, scale, 32}, 3, 8, 100},
          {{3, 1, 40, scale, 16}, 4, 4, 50},   {{6, 2, 128, scale, 64}, 3, 64, 129},
          {{5, 1, 7, scale, 7}, 3, 3, 30},     {{2, 1, 200, scale, 64}, 2, 16, 65}};
}

// The written order, word for word, one head.
std::vector<float> attention_in_contract(const std::vector<float>& q, float scale, uint32_t split,
                                         const std::vector<std::vector<float>>& keys,
                                         const std::vector<std::vector<float>>& values,
                                         const float* sink) {
  const size_t dim = q.size();
  std::vector<float> total(dim);
  float mass = 0.0f, largest = 0.0f;
  for (size_t begin = 0; begin < keys.size(); begin += split) {
    const size_t end = std::min(keys.size(), begin + split);
    std::vector<float> scores, acc(dim, 0.0f);
    float m = -std::numeric_limits<float>::infinity(), l = 0.0f;
    for (size_t j = begin; j < end; ++j) {
      scores.push_back(dot_f32(Isa::plain, q.data(), keys[j].data(), dim) * scale);
      m = scores.back() > m ? scores.back() : m;
    }
    for (size_t j = begin; j < end; ++j) {
      const float p = exp_f32(scores[j - begin] - m);
      l += p;
      for (size_t d = 0; d < dim; ++d) acc[d] = fma_f32(p, values[j][d], acc[d]);
    }
    if (begin == 0) {
      total = acc;
      mass = l;
      largest = m;
      continue;
    }
    const float next = m > largest ? m : largest;
    const float a = exp_f32(largest - next), b = exp_f32(m - next);
    mass = fma_f32(l, b, mass * a);
    for (size_t d = 0; d < dim; ++d) total[d] = fma_f32(acc[d], b, total[d] * a);
    largest = next;
  }
  float shrink = 1.0f;
  if (sink != nullptr) {
    const float next = *sink > largest ? *sink : largest;
    shrink = exp_f32(largest - next);
    mass = fma_f32(1.0f, exp_f32(*sink - next), mass * shrink);
  }
  for (float& value : total) value = value * shrink / mass;
  return total;
}

TEST_CASE("grouped-query attention is close to the double reference") {
  Exec exec;
  for (const GqaCase& c : gqa_cases()) {
    const auto expected =
        reference::gqa_attention(c.shape, c.paged.view(), c.q.data(), c.k.data(), c.v.data());
    CHECK(test::largest_error(c.run(exec), expected) < 2e-6);
  }
}

TEST_CASE("grouped-query attention has the same bits on every path and thread count") {
  for (const GqaCase& c : gqa_cases()) {
    CHECK(test::path_that_differs([&](Exec& exec) { return c.run(exec); }) == "");
  }
}

TEST_CASE("grouped-query attention follows the written order to the bit") {
  Exec exec;
  for (const GqaCase& c : gqa_cases()) {
    const std::vector<float> out = c.run(exec);
    const uint32_t dim = c.shape.head_dim, row = 0;
    for (uint32_t head = 0; head < c.shape.heads; ++head) {
      std::vector<std::vector<float>> keys, values;
      for (int32_t t = 0; t <= c.paged.positions[row]; ++t) {
        const uint64_t at = (static_cast<uint64_t>(c.paged.slot(row, t)) * c.shape.kv_heads +
                             head / (c.shape.heads / c.shape.kv_heads)) *
                            dim;
        keys.push_back(slice(c.k, at, dim));
        values.push_back(slice(c.v, at, dim));
      }
      const auto expected =
          attention_in_contract(slice(c.q, uint64_t{head} * dim, dim), c.shape.scale,
                                c.shape.split_keys, keys, values, nullptr);
      REQUIRE(test::bits_of(slice(out, uint64_t{head} * dim, dim)) == test::bits_of(expected));
    }
  }
}

TEST_CASE("a row alone attends as among 63 others, on any pages") {
  const GqaCase c({4, 2, 64, 0.125f, 64}, 64, 16, 150);
  Exec exec(2);
  const std::vector<float> together = c.run(exec);
  const uint64_t width = uint64_t{c.shape.heads} * c.shape.head_dim;
  for (const uint32_t row : {0u, 1u, 17u, 63u}) {
    std::vector<float> out(width);
    gqa_attention(exec, c.shape, c.paged.alone(row), c.q.data() + row * width, c.k.data(),
                  c.v.data(), out.data());
    CHECK(test::bits_of(out) == test::bits_of(slice(together, row * width, width)));
  }
  // The same content on other pages.
  std::vector<int32_t> order(c.paged.pages);
  for (size_t page = 0; page < order.size(); ++page) {
    order[page] = static_cast<int32_t>(order.size() - 1 - page);
  }
  const uint64_t page_items = uint64_t{16} * c.shape.kv_heads * c.shape.head_dim;
  GqaCase moved = c;
  moved.k = test::move_pages(c.k, page_items, order);
  moved.v = test::move_pages(c.v, page_items, order);
  for (int32_t& page : moved.paged.table) page = order[static_cast<size_t>(page)];
  CHECK(test::bits_of(moved.run(exec)) == test::bits_of(together));
}

TEST_CASE("attention sees only keys up to its position, and zeros without one") {
  GqaCase c({4, 2, 64, 0.125f, 64}, 3, 16, 80);
  Exec exec;
  c.paged.positions = {40, 12, -1};
  const std::vector<float> before = c.run(exec);
  for (int32_t t = 41; t < 80; ++t) {
    const uint64_t at = static_cast<uint64_t>(c.paged.slot(0, t)) * 128;
    std::fill_n(c.k.begin() + static_cast<int64_t>(at), 128, 1e9f);
    std::fill_n(c.v.begin() + static_cast<int64_t>(at), 128, 1e9f);
  }
  CHECK(test::bits_of(c.run(exec)) == test::bits_of(before));
  CHECK(slice(before, 2 * 256, 256) == std::vector<float>(256, 0.0f));
  c.k[static_cast<uint64_t>(c.paged.slot(0, 40)) * 128] += 1.0f;
  CHECK(test::bits_of(c.run(exec)) != test::bits_of(before));
}

TEST_CASE("a wrong page table or position stays inside the buffers") {
  GqaCase c({2, 1, 64, 0.125f, 64}, 2, 16, 40);
  Exec exec;
  c.paged.positions = {39, std::numeric_limits<int32_t>::max()};
  c.paged.table[0] = -1;
  c.paged.table[1] = 1 << 30;
  const std::vector<float> out = c.run(exec);
  c.paged.table[0] = c.paged.table[1] = 0;
  CHECK(test::bits_of(c.run(exec)) == test::bits_of(out));
}

TEST_CASE("stores put rows into their slots, the last of a shared slot stays") {
  Exec exec(3);
  const std::vector<float> k = test::random_floats(1, 4 * 6), v = test::random_floats(2, 4 * 7);
  const std::vector<int32_t> slots = {2, 0, -1, 0};
  std::vector<float> k_cache(3 * 5, 9.0f), v_cache(3 * 5, 9.0f);
  kv_store(exec, k.data(), 6, v.data(), 7, slots.data(), 4, 5, k_cache.data(), v_cache.data());
  CHECK(slice(k_cache, 0, 5) == slice(k, 3 * 6, 5));
  CHECK(slice(v_cache, 0, 5) == slice(v, 3 * 7, 5));
  CHECK(slice(k_cache, 5, 5) == std::vector<float>(5, 9.0f));
  CHECK(slice(k_cache, 10, 5) == slice(k, 0, 5));
  CHECK(slice(v_cache, 10, 5) == slice(v, 0, 5));
  std::vector<uint16_t> cache(3 * 5, 1);
  latent_store(exec, k.data(), 6, slots.data(), 4, 5, cache.data());
  for (size_t d = 0; d < 5; ++d) {
    CHECK(cache[d] == bf16_from_f32(k[3 * 6 + d]));
    CHECK(cache[5 + d] == 1);
    CHECK(cache[10 + d] == bf16_from_f32(k[d]));
  }
}

struct LatentCase {
  LatentShape shape;
  PagedFixture paged;
  bool with_selection;
  uint32_t selected_count = 20;
  std::vector<float> q, sink;
  std::vector<uint16_t> swa, extra;
  std::vector<int32_t> selected;

  LatentCase(const LatentShape& s, uint32_t rows, uint32_t longest, bool selection)
      : shape(s),
        paged(5, rows, 16, longest),
        with_selection(selection),
        q(test::random_floats(1, uint64_t{rows} * s.heads * s.head_dim, 2.0f)),
        sink(test::random_floats(2, s.heads)),
        swa(random_bf16(3, paged.slot_count() * s.head_dim)),
        extra(random_bf16(4, s.ratio == 0 ? 0 : paged.slot_count() / s.ratio * s.head_dim)) {
    for (uint32_t row = 0; row < rows; ++row) {
      const auto entries =
          s.ratio == 0 ? 0 : (paged.positions[row] + 1) / static_cast<int32_t>(s.ratio);
      for (int32_t i = 0; i < static_cast<int32_t>(selected_count); ++i) {
        selected.push_back(2 * i < entries ? 2 * i : -1);
      }
    }
  }
  const int32_t* selection() const { return with_selection ? selected.data() : nullptr; }
  std::vector<float> run(Exec& exec, bool sinks = true) const {
    std::vector<float> out(q.size(), 7.0f);
    latent_attention(exec, shape, paged.view(), q.data(), swa.data(), extra.data(), selection(),
                     selected_count, sinks ? sink.data() : nullptr, out.data());
    return out;
  }
};

std::vector<LatentCase> latent_cases() {
  return {{{8, 64, 32, 0, 0.125f, 64}, 4, 100, false}, {{4, 64, 16, 4, 0.125f, 16}, 4, 200, false},
          {{4, 64, 16, 4, 0.125f, 64}, 4, 200, true},  {{11, 48, 9, 8, 0.125f, 10}, 3, 90, true},
          {{3, 256, 40, 16, 0.05f, 64}, 2, 70, false}, {{2, 64, 0, 4, 0.125f, 64}, 2, 50, true}};
}

TEST_CASE("latent attention is close to the double reference") {
  Exec exec;
  for (const LatentCase& c : latent_cases()) {
    for (const bool sinks : {true, false}) {
      const auto expected = reference::latent_attention(
          c.shape, c.paged.view(), c.q.data(), c.swa.data(), c.extra.data(), c.selection(),
          c.selected_count, sinks ? c.sink.data() : nullptr);
      CHECK(test::largest_error(c.run(exec, sinks), expected) < 2e-6);
    }
  }
}

TEST_CASE("latent attention has the same bits on every path and thread count") {
  for (const LatentCase& c : latent_cases()) {
    CHECK(test::path_that_differs([&](Exec& exec) { return c.run(exec); }) == "");
    CHECK(test::path_that_differs([&](Exec& exec) { return c.run(exec, false); }) == "");
  }
}

TEST_CASE("latent attention follows the written order to the bit") {
  const LatentCase c({4, 64, 16, 4, 0.125f, 16}, 3, 200, true);
  Exec exec;
  const std::vector<float> out = c.run(exec);
  std::vector<std::vector<float>> keys;
  const auto push = [&](const std::vector<uint16_t>& cache, uint64_t slot) {
    std::vector<float> key;
    for (uint64_t d = 0; d < 64; ++d) key.push_back(f32_from_bf16(cache[slot * 64 + d]));
    keys.push_back(key);
  };
  for (int32_t t = 184; t < 200; ++t) push(c.swa, static_cast<uint64_t>(c.paged.slot(0, t)));
  for (size_t i = 0; i < c.selected_count && c.selected[i] >= 0; ++i) {
    const auto entry = static_cast<uint64_t>(c.selected[i]);
    push(c.extra, static_cast<uint64_t>(c.paged.table[entry / 4]) * 4 + entry % 4);
  }
  REQUIRE(keys.size() == 36);
  for (uint32_t head = 0; head < 4; ++head) {
    const auto expected = attention_in_contract(slice(c.q, uint64_t{head} * 64, 64), 0.125f, 16,
                                                keys, keys, &c.sink[head]);
    CHECK(test::bits_of(slice(out, uint64_t{head} * 64, 64)) == test::bits_of(expected));
  }
}

TEST_CASE("a latent row alone attends as among 63 others, and passes over foreign entries") {
  LatentCase c({4, 64, 16, 4, 0.125f, 64}, 64, 120, true);
  Exec exec(2);
  const std::vector<float> together = c.run(exec);
  for (const uint32_t row : {0u, 1u, 40u, 63u}) {
    std::vector<float> out(256);
    latent_attention(exec, c.shape, c.paged.alone(row), c.q.data() + row * 256, c.swa.data(),
                     c.extra.data(), c.selected.data() + row * 20, 20, c.sink.data(), out.data());
    CHECK(test::bits_of(out) == test::bits_of(slice(together, uint64_t{row} * 256, 256)));
  }
  c.selected[1] = 1 << 29;  // garbage beyond the table
  const std::vector<float> garbage = c.run(exec);
  c.selected.erase(c.selected.begin() + 1);
  c.selected.insert(c.selected.begin() + 19, -1);
  CHECK(test::bits_of(slice(c.run(exec), 0, 256)) == test::bits_of(slice(garbage, 0, 256)));
}

}  // namespace
}  // namespace redecode
