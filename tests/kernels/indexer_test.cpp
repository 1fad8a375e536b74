#include "engine/kernels/indexer.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
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

constexpr IndexKeyType kTypes[] = {IndexKeyType::bf16, IndexKeyType::fp8, IndexKeyType::fp4};

TEST_CASE("index keys have the sizes that page layout follows from") {
  CHECK(index_key_bytes(IndexKeyType::bf16, 128) == 256);
  CHECK(index_key_bytes(IndexKeyType::fp8, 128) == 132);
  CHECK(index_key_bytes(IndexKeyType::fp4, 128) == 68);
  CHECK(index_query_bytes(IndexKeyType::bf16, 128) == 256);
  CHECK(index_query_bytes(IndexKeyType::fp8, 128) == 128);
  CHECK(index_query_bytes(IndexKeyType::fp4, 128) == 64);
}

TEST_CASE("an index key decodes to within half a step of what was encoded") {
  const std::vector<float> x = test::random_floats(1, 128, 3.0f);
  float largest = 0.0f;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  for (const IndexKeyType type : kTypes) {
    std::vector<std::byte> key(index_key_bytes(type, 128) + 1, std::byte{0x55});
    index_key_encode(type, x.data(), 128, key.data());
    CHECK(key.back() == std::byte{0x55});
    std::vector<float> values(128);
    const float scale = index_key_decode(type, key.data(), 128, values.data());
    if (type == IndexKeyType::bf16) CHECK(scale == 1.0f);
    if (type == IndexKeyType::fp8) CHECK(scale == largest / 448.0f);
    if (type == IndexKeyType::fp4) CHECK(scale == largest / 6.0f);
    for (size_t d = 0; d < 128; ++d) {
      const float error = std::fabs(values[d] * scale - x[d]), size = std::fabs(x[d]);
      if (type == IndexKeyType::bf16) CHECK(error <= size * 0x1p-8f);
      if (type == IndexKeyType::fp8) CHECK(error <= size * 0x1p-4f + largest * 1e-5f);
      if (type == IndexKeyType::fp4)
        CHECK(error <= std::max(size / 4.0f, largest / 24.0f) * 1.001f);
    }
  }
}

TEST_CASE("an all-zero key has scale 1, a NaN does not reach the scale") {
  std::vector<float> x(64, 0.0f), values(64);
  for (const IndexKeyType type : kTypes) {
    std::vector<std::byte> key(index_key_bytes(type, 64));
    index_key_encode(type, x.data(), 64, key.data());
    CHECK(index_key_decode(type, key.data(), 64, values.data()) == 1.0f);
    CHECK(values == x);
  }
  x[0] = std::numeric_limits<float>::quiet_NaN();
  x[1] = 6.0f;
  std::vector<std::byte> key(index_key_bytes(IndexKeyType::fp4, 64));
  index_key_encode(IndexKeyType::fp4, x.data(), 64, key.data());
  CHECK(index_key_decode(IndexKeyType::fp4, key.data(), 64, values.data()) == 1.0f);
  CHECK(values[1] == 6.0f);
}

TEST_CASE("fp4 keys hold the even element in the low nibble") {
  const std::vector<float> x = {6.0f, -0.5f};
  std::vector<std::byte> key(index_key_bytes(IndexKeyType::fp4, 2));
  index_key_encode(IndexKeyType::fp4, x.data(), 2, key.data());
  CHECK(key[0] == std::byte{0x97});
}

TEST_CASE("an index query's scale moves into its weight") {
  const std::vector<float> q = test::random_floats(2, 3 * 2 * 64);
  for (const IndexKeyType type : kTypes) {
    Exec exec(2);
    std::vector<float> weights(6, 0.5f);
    std::vector<std::byte> out(6 * index_query_bytes(type, 64));
    index_query_encode(exec, type, q.data(), 3, 2, 64, 0.25f, weights.data(), out.data());
    for (size_t i = 0; i < 6; ++i) {
      std::vector<std::byte> key(index_key_bytes(type, 64));
      std::vector<float> values(64);
      index_key_encode(type, q.data() + i * 64, 64, key.data());
      const float scale = index_key_decode(type, key.data(), 64, values.data());
      CHECK(weights[i] == 0.5f * (0.25f * scale));
      CHECK(std::memcmp(out.data() + i * index_query_bytes(type, 64), key.data(),
                        index_query_bytes(type, 64)) == 0);
    }
  }
}

// One request of `tokens` tokens: every row the next position.
struct CompressCase {
  CompressShape shape;
  PagedFixture paged;
  std::vector<float> kv_score, norm, state;

  CompressCase(const CompressShape& s, uint32_t tokens)
      : shape(s),
        paged(7, 1, 16, tokens),
        kv_score(test::random_floats(1, uint64_t{tokens} * 2 * s.dim, 2.0f)),
        norm(test::random_floats(2, s.dim)),
        state(paged.slot_count() * 2 * s.dim) {
    std::vector<int32_t> table;
    paged.positions.clear();
    paged.slots.clear();
    for (uint32_t t = 0; t < tokens; ++t) {
      table.insert(table.end(), paged.table.begin(), paged.table.end());
      paged.positions.push_back(static_cast<int32_t>(t));
      paged.slots.push_back(paged.slot(0, static_cast<int32_t>(t)));
    }
    paged.table = table;
    paged.rows = tokens;
  }
  // Tokens [begin, end) in one call; returns the rows' entries.
  std::vector<float> run(Exec& exec, uint32_t begin, uint32_t end, std::vector<int32_t>& made) {
    PagedRows rows = paged.alone(begin);
    rows.rows = end - begin;
    std::vector<float> out(uint64_t{end - begin} * shape.dim, 9.0f);
    made.assign(end - begin, 99);
    compress(exec, shape, rows, paged.slots.data() + begin,
             kv_score.data() + uint64_t{begin} * 2 * shape.dim, state.data(), norm.data(),
             out.data(), made.data());
    return out;
  }
};

TEST_CASE("compression is close to the double reference") {
  for (const uint32_t ratio : {1u, 4u, 16u}) {
    CompressCase c({72, ratio, 32, 1e-6f, 10000.0f}, 50);
    Exec exec;
    std::vector<int32_t> made;
    const std::vector<float> out = c.run(exec, 0, 50, made);
    for (uint32_t t = 0; t < 50; ++t) {
      const std::vector<float> entry(out.begin() + t * 72, out.begin() + (t + 1) * 72);
      if ((t + 1) % ratio != 0) {
        CHECK(made[t] == -1);
        CHECK(entry == std::vector<float>(72, 0.0f));
        continue;
      }
      REQUIRE(made[t] == static_cast<int32_t>(t / ratio));
      const auto expected =
          reference::compress(c.shape, c.paged.view(), t, t / ratio, c.state.data(), c.norm.data());
      CHECK(test::largest_error(entry, expected) < 1e-5);
    }
  }
}

TEST_CASE("compression has the same bits on every path, in one call or token by token") {
  const CompressShape shape = {72, 4, 32, 1e-6f, 10000.0f};
  CHECK(test::path_that_differs([&](Exec& exec) {
          CompressCase c(shape, 40);
          std::vector<int32_t> made;
          return c.run(exec, 0, 40, made);
        }) == "");
  Exec exec(2);
  std::vector<int32_t> made, one;
  CompressCase together(shape, 40), single(shape, 40);
  const std::vector<float> expected = together.run(exec, 0, 40, made);
  std::vector<float> out;
  for (uint32_t t = 0; t < 40; ++t) {
    const std::vector<float> row = single.run(exec, t, t + 1, one);
    out.insert(out.end(), row.begin(), row.end());
    CHECK(one[0] == made[t]);
  }
  CHECK(test::bits_of(out) == test::bits_of(expected));
  CHECK(test::bits_of(single.state) == test::bits_of(together.state));
}

struct ScoreCase {
  IndexKeyType type;
  PagedFixture paged;
  uint32_t heads, dim, ratio = 4, stride;
  uint64_t page_stride;
  std::vector<std::byte> cache, q;
  std::vector<float> weights;

  ScoreCase(IndexKeyType t, uint32_t rows, uint32_t longest, uint32_t head_count, uint32_t dims)
      : type(t),
        paged(9, rows, 16, longest),
        heads(head_count),
        dim(dims),
        stride(longest / 4 + 3) {
    page_stride = 4 * index_key_bytes(type, dim) + 8;
    cache.resize(paged.pages * page_stride);
    // Entry j of row r is made by storing it as the engine does.
    std::vector<int32_t> made(rows);
    for (uint32_t j = 0; j < longest / 4; ++j) {
      const std::vector<float> entries = test::random_floats(1000 + j, uint64_t{rows} * dim);
      for (int32_t& m : made) m = static_cast<int32_t>(j);
      Exec exec;
      store_index_entries(exec, type, paged.view(), ratio, entries.data(), made.data(), dim,
                          page_stride, cache.data());
    }
    weights = test::random_floats(4, uint64_t{rows} * heads);
    q.resize(uint64_t{rows} * heads * index_query_bytes(type, dim));
    const std::vector<float> queries = test::random_floats(5, uint64_t{rows} * heads * dim);
    Exec exec;
    index_query_encode(exec, type, queries.data(), rows, heads, dim, 0.5f, weights.data(),
                       q.data());
  }
  const std::byte* key(uint32_t row, uint32_t entry) const {
    const auto page =
        static_cast<uint64_t>(paged.table[uint64_t{row} * paged.table_stride + entry / 4]);
    return cache.data() + page * page_stride + entry % 4 * index_key_bytes(type, dim);
  }
  std::vector<float> run(Exec& exec) const {
    std::vector<float> logits(uint64_t{paged.rows} * stride, 777.0f);
    index_scores(exec, type, paged.view(), ratio, heads, dim, q.data(), weights.data(), page_stride,
                 cache.data(), logits.data(), stride);
    return logits;
  }
};

TEST_CASE("index scores follow the written order and the double reference") {
  for (const IndexKeyType type : kTypes) {
    for (const uint32_t dim : {128u, 48u}) {
      const ScoreCase c(type, 4, 600, 4, dim);
      Exec exec;
      const std::vector<float> logits = c.run(exec);
      for (uint32_t row = 0; row < 4; ++row) {
        const auto entries = static_cast<uint32_t>(c.paged.positions[row] + 1) / 4;
        for (uint32_t j = 0; j < c.stride; ++j) {
          const float got = logits[uint64_t{row} * c.stride + j];
          if (j >= entries) {
            REQUIRE(got == 777.0f);
            continue;
          }
          const std::byte* head_q = c.q.data() + uint64_t{row} * 4 * index_query_bytes(type, dim);
          const double expected = reference::index_score(type, 4, dim, head_q,
                                                         c.weights.data() + row * 4, c.key(row, j));
          REQUIRE(std::fabs(static_cast<double>(got) - expected) < 1e-4);
          std::vector<float> key(dim), query(dim);
          const float scale = index_key_decode(type, c.key(row, j), dim, key.data());
          float acc = 0.0f;
          for (uint32_t h = 0; h < 4; ++h) {
            std::vector<std::byte> head(head_q + h * index_query_bytes(type, dim),
                                        head_q + (h + 1) * index_query_bytes(type, dim));
            head.resize(index_key_bytes(type, dim));
            index_key_decode(type, head.data(), dim, query.data());
            const float dot = dot_f32(Isa::plain, query.data(), key.data(), dim);
            acc = fma_f32(c.weights[row * 4 + h], (dot < 0.0f ? 0.0f : dot) * scale, acc);
          }
          REQUIRE(got == acc);
        }
      }
    }
  }
}

TEST_CASE("index scores have the same bits on every path and alone") {
  for (const IndexKeyType type : kTypes) {
    const ScoreCase c(type, 64, 330, 3, 128);
    CHECK(test::path_that_differs([&](Exec& exec) { return c.run(exec); }) == "");
    Exec exec;
    const std::vector<float> together = c.run(exec);
    for (const uint32_t row : {0u, 31u, 63u}) {
      std::vector<float> logits(c.stride, 777.0f);
      index_scores(exec, type, c.paged.alone(row), 4, 3, 128,
                   c.q.data() + uint64_t{row} * 3 * index_query_bytes(type, 128),
                   c.weights.data() + row * 3, c.page_stride, c.cache.data(), logits.data(),
                   c.stride);
      CHECK(test::bits_of(logits) ==
            test::bits_of({together.data() + uint64_t{row} * c.stride, c.stride}));
    }
  }
}

TEST_CASE("latent entries are stored where latent attention looks for them") {
  const PagedFixture paged(3, 2, 16, 60);
  Exec exec;
  const std::vector<float> entries = test::random_floats(6, 2 * 8);
  std::vector<uint16_t> cache(uint64_t{paged.pages} * 4 * 8, 1);
  const std::vector<int32_t> made = {9, -1};
  store_latent_entries(exec, paged.view(), 4, entries.data(), made.data(), 8, cache.data());
  const auto slot = static_cast<uint64_t>(paged.table[2]) * 4 + 1;
  for (uint64_t i = 0; i < cache.size(); ++i) {
    CHECK(cache[i] == (i / 8 == slot ? bf16_from_f32(entries[i % 8]) : 1));
  }
}

}  // namespace
}  // namespace redecode
