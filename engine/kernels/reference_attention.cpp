#include "engine/kernels/reference_attention.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/convert.h"

namespace redecode::reference {
namespace {

uint64_t page_at(const PagedRows& paged, uint32_t row, uint64_t index) {
  return static_cast<uint64_t>(paged.page_table[uint64_t{row} * paged.table_stride + index]);
}

std::vector<double> f32_vector(const float* x, uint32_t dim) { return {x, x + dim}; }

std::vector<double> bf16_vector(const uint16_t* x, uint32_t dim) {
  std::vector<double> out;
  for (uint32_t d = 0; d < dim; ++d) out.push_back(f32_from_bf16(x[d]));
  return out;
}

}  // namespace

std::vector<double> softmax_attention(const float* q, uint32_t dim, double scale,
                                      const std::vector<std::vector<double>>& keys,
                                      const std::vector<std::vector<double>>& values,
                                      const float* sink) {
  std::vector<double> scores, out(dim, 0.0);
  if (keys.empty()) return out;
  double largest = sink == nullptr ? -INFINITY : static_cast<double>(*sink);
  for (const auto& key : keys) {
    double dot = 0.0;
    for (uint32_t d = 0; d < dim; ++d) dot += static_cast<double>(q[d]) * key[d];
    scores.push_back(dot * scale);
    largest = std::max(largest, scores.back());
  }
  double mass = sink == nullptr ? 0.0 : std::exp(static_cast<double>(*sink) - largest);
  for (size_t j = 0; j < keys.size(); ++j) {
    const double p = std::exp(scores[j] - largest);
    mass += p;
    for (uint32_t d = 0; d < dim; ++d) out[d] += p * values[j][d];
  }
  for (double& value : out) value /= mass;
  return out;
}

std::vector<double> gqa_attention(const GqaShape& shape, const PagedRows& paged, const float* q,
                                  const float* k_cache, const float* v_cache) {
  std::vector<double> out;
  for (uint32_t row = 0; row < paged.rows; ++row) {
    for (uint32_t head = 0; head < shape.heads; ++head) {
      const uint32_t kv_head = head / (shape.heads / shape.kv_heads);
      std::vector<std::vector<double>> keys, values;
      for (int32_t t = 0; t <= paged.positions[row]; ++t) {
        const auto token = static_cast<uint32_t>(t);
        const uint64_t slot = page_at(paged, row, token / paged.page_size) * paged.page_size +
                              token % paged.page_size;
        const uint64_t at = (slot * shape.kv_heads + kv_head) * shape.head_dim;
        keys.push_back(f32_vector(k_cache + at, shape.head_dim));
        values.push_back(f32_vector(v_cache + at, shape.head_dim));
      }
      const auto result =
          softmax_attention(q + (uint64_t{row} * shape.heads + head) * shape.head_dim,
                            shape.head_dim, static_cast<double>(shape.scale), keys, values);
      out.insert(out.end(), result.begin(), result.end());
    }
  }
  return out;
}

std::vector<double> latent_attention(const LatentShape& shape, const PagedRows& paged,
                                     const float* q, const uint16_t* swa_cache,
                                     const uint16_t* extra_cache, const int32_t* selected,
                                     uint32_t selected_count, const float* sink) {
  std::vector<double> out;
  for (uint32_t row = 0; row < paged.rows; ++row) {
    const int64_t position = paged.positions[row];
    std::vector<std::vector<double>> keys;
    for (int64_t t = std::max<int64_t>(0, position - shape.window + 1); t <= position; ++t) {
      const auto token = static_cast<uint64_t>(t);
      const uint64_t slot =
          page_at(paged, row, token / paged.page_size) * paged.page_size + token % paged.page_size;
      keys.push_back(bf16_vector(swa_cache + slot * shape.head_dim, shape.head_dim));
    }
    std::vector<uint64_t> entries;
    if (shape.ratio > 0 && selected != nullptr) {
      for (uint32_t i = 0; i < selected_count; ++i) {
        const int32_t entry = selected[uint64_t{row} * selected_count + i];
        if (entry < 0) break;
        entries.push_back(static_cast<uint64_t>(entry));
      }
    } else if (shape.ratio > 0) {
      for (int64_t j = 0; j < (position + 1) / shape.ratio; ++j) {
        entries.push_back(static_cast<uint64_t>(j));
      }
    }
    for (const uint64_t entry : entries) {
      const uint64_t per_page = paged.page_size / shape.ratio;
      const uint64_t slot = page_at(paged, row, entry / per_page) * per_page + entry % per_page;
      keys.push_back(bf16_vector(extra_cache + slot * shape.head_dim, shape.head_dim));
    }
    for (uint32_t head = 0; head < shape.heads; ++head) {
      const auto result = softmax_attention(
          q + (uint64_t{row} * shape.heads + head) * shape.head_dim, shape.head_dim,
          static_cast<double>(shape.scale), keys, keys, sink == nullptr ? nullptr : sink + head);
      out.insert(out.end(), result.begin(), result.end());
    }
  }
  return out;
}

std::vector<double> compress(const CompressShape& shape, const PagedRows& paged, uint32_t row,
                             uint32_t entry, const float* state, const float* norm) {
  std::vector<double> out(shape.dim, 0.0);
  double square_sum = 0.0;
  for (uint32_t d = 0; d < shape.dim; ++d) {
    double mass = 0.0;
    for (uint32_t i = 0; i < shape.ratio; ++i) {
      const uint32_t token = entry * shape.ratio + i;
      const uint64_t slot =
          page_at(paged, row, token / paged.page_size) * paged.page_size + token % paged.page_size;
      const float* pair = state + slot * 2 * shape.dim;
      const double p = std::exp(static_cast<double>(pair[shape.dim + d]));
      mass += p;
      out[d] += p * static_cast<double>(pair[d]);
    }
    out[d] /= mass;
    square_sum += out[d] * out[d];
  }
  const double factor = 1.0 / std::sqrt(square_sum / shape.dim + static_cast<double>(shape.eps));
  for (uint32_t d = 0; d < shape.dim; ++d) {
    out[d] *= factor * (norm == nullptr ? 1.0 : static_cast<double>(norm[d]));
  }
  const uint32_t offset = shape.dim - shape.rope_dim;
  for (uint32_t pair = 0; pair < shape.rope_dim / 2; ++pair) {
    const double angle = entry * shape.ratio *
                         std::pow(static_cast<double>(shape.theta), -2.0 * pair / shape.rope_dim);
    double& even = out[offset + 2 * pair];
    double& odd = out[offset + 2 * pair + 1];
    const double turned = even * std::cos(angle) - odd * std::sin(angle);
    odd = even * std::sin(angle) + odd * std::cos(angle);
    even = turned;
  }
  return out;
}

double index_score(IndexKeyType type, uint32_t heads, uint32_t dim, const std::byte* q,
                   const float* weights, const std::byte* key) {
  // A query head is stored without a scale; the room for one is added so that it decodes as a key.
  std::vector<float> key_values(dim), query(dim);
  const double scale = static_cast<double>(index_key_decode(type, key, dim, key_values.data()));
  double logit = 0.0;
  for (uint32_t h = 0; h < heads; ++h) {
    const std::byte* head = q + uint64_t{h} * index_query_bytes(type, dim);
    std::vector<std::byte> with_scale(head, head + index_query_bytes(type, dim));
    with_scale.resize(index_key_bytes(type, dim));
    index_key_decode(type, with_scale.data(), dim, query.data());
    double dot = 0.0;
    for (uint32_t d = 0; d < dim; ++d) {
      dot += static_cast<double>(query[d]) * static_cast<double>(key_values[d]);
    }
    logit += static_cast<double>(weights[h]) * std::max(dot, 0.0) * scale;
  }
  return logit;
}

}  // namespace redecode::reference
