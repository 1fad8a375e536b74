#include "engine/kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/kernels/convert.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/math.h"
#include "engine/kernels/paging.h"
#include "engine/kernels/vector_math.h"
#include "traces/check.h"

namespace redecode {
namespace {

// Online softmax of a few heads that share their keys: absorb splits in order, then finish.
class HeadGroup {
 public:
  // key_dim in elements of lane layout; value_dim as the values lie.
  void begin(Isa isa, uint32_t heads, uint32_t key_dim, uint32_t value_dim, uint32_t split_keys,
             float scale) {
    isa_ = isa;
    lanes_ = &lane_kernels(isa);
    heads_ = heads;
    key_dim_ = key_dim;
    value_dim_ = value_dim;
    split_keys_ = split_keys;
    scale_ = scale;
    splits_ = 0;
    query_.resize(size_t{heads} * key_dim);
    keys_.resize(size_t{split_keys} * key_dim);
    values_.resize(split_keys);
    scores_.resize(size_t{heads} * split_keys);
    part_.resize(size_t{heads} * value_dim);
    total_.resize(size_t{heads} * value_dim);
    largest_.resize(heads);
    mass_.resize(heads);
    part_mass_.resize(heads);
    part_largest_.resize(heads);
  }

  float* query(uint32_t head) { return query_.data() + size_t{head} * key_dim_; }
  float* key(uint32_t index) { return keys_.data() + size_t{index} * key_dim_; }
  void set_value(uint32_t index, const float* value) { values_[index] = value; }

  // Takes keys 0..count-1 as the next split.
  void absorb(uint32_t count) {
    lanes_->dots(query_.data(), heads_, keys_.data(), count, key_dim_, scores_.data(), split_keys_);
    const bool first = splits_++ == 0;
    std::vector<float>& acc = first ? total_ : part_;
    std::vector<float>& sum = first ? mass_ : part_mass_;
    std::fill(acc.begin(), acc.end(), 0.0f);
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (uint32_t h = 0; h < heads_; ++h) {
      float* scores = scores_.data() + size_t{h} * split_keys_;
      const float largest = lanes_->shift_scores(scores, count, scale_);
      exp_array(isa_, scores, count, scores);
      (first ? largest_ : part_largest_)[h] = largest;
    }
    lanes_->weigh(scores_.data(), split_keys_, heads_, values_.data(), count, value_dim_,
                  acc.data(), sum.data());
    if (!first) {
      for (uint32_t h = 0; h < heads_; ++h) join(h);
    }
  }

  void absorb_sink(uint32_t head, float logit) {
    float* total = total_.data() + size_t{head} * value_dim_;
    const float next = logit > largest_[head] ? logit : largest_[head];
    const float keep = exp_f32(largest_[head] - next), take = exp_f32(logit - next);
    mass_[head] = fma_f32(1.0f, take, mass_[head] * keep);
    for (uint32_t d = 0; d < value_dim_; ++d) total[d] *= keep;
    largest_[head] = next;
  }

  uint32_t splits() const { return splits_; }
  const float* total(uint32_t head) const { return total_.data() + size_t{head} * value_dim_; }
  float mass(uint32_t head) const { return mass_[head]; }

 private:
  void join(uint32_t h) {
    const float largest = part_largest_[h];
    const float next = largest > largest_[h] ? largest : largest_[h];
    const float keep = exp_f32(largest_[h] - next), take = exp_f32(largest - next);
    mass_[h] = fma_f32(part_mass_[h], take, mass_[h] * keep);
    lanes_->combine(total_.data() + size_t{h} * value_dim_, keep,
                    part_.data() + size_t{h} * value_dim_, take, value_dim_);
    largest_[h] = next;
  }

  Isa isa_ = Isa::plain;
  const LaneKernels* lanes_ = nullptr;
  uint32_t heads_ = 0, key_dim_ = 0, value_dim_ = 0, split_keys_ = 0, splits_ = 0;
  float scale_ = 0.0f;
  std::vector<float> query_, keys_, scores_, part_, total_, largest_, mass_, part_largest_,
      part_mass_;
  std::vector<const float*> values_;
};

void gqa_item(HeadGroup& group, Isa isa, const GqaShape& shape, const PagedRows& paged,
              uint32_t row, uint32_t kv_head, const float* q, const float* k_cache,
              const float* v_cache, float* out) {
  const LaneKernels& lanes = lane_kernels(isa);
  const uint32_t heads = shape.heads / shape.kv_heads, dim = shape.head_dim;
  const uint64_t first = (uint64_t{row} * shape.heads + uint64_t{kv_head} * heads) * dim;
  const uint32_t count = visible_tokens(paged, row);
  group.begin(isa, heads, lane_padded(dim), dim, shape.split_keys, shape.scale);
  for (uint32_t h = 0; h < heads; ++h) {
    lanes.from_f32(q + first + uint64_t{h} * dim, dim, group.query(h));
  }
  for (uint32_t begin = 0; begin < count; begin += shape.split_keys) {
    const uint32_t keys = std::min(shape.split_keys, count - begin);
    for (uint32_t j = 0; j < keys; ++j) {
      const uint64_t slot = slot_of(paged, row, begin + j, paged.page_size);
      const uint64_t at = (slot * shape.kv_heads + kv_head) * dim;
      lanes.from_f32(k_cache + at, dim, group.key(j));
      group.set_value(j, v_cache + at);
    }
    group.absorb(keys);
    if (count - begin <= shape.split_keys) break;
  }
  for (uint32_t h = 0; h < heads; ++h) {
    float* target = out + first + uint64_t{h} * dim;
    const float* total = group.total(h);
    const float mass = group.mass(h);
    for (uint32_t d = 0; d < dim; ++d) target[d] = count == 0 ? 0.0f : total[d] / mass;
  }
}

// The keys of one latent row in the contract's order, as an indexable list of cache entries.
class LatentKeys {
 public:
  LatentKeys(const LatentShape& shape, const PagedRows& paged, uint32_t row,
             const uint16_t* swa_cache, const uint16_t* extra_cache, const int32_t* selected,
             uint32_t selected_count, std::vector<const uint16_t*>& keys)
      : keys_(keys) {
    keys_.clear();
    const uint32_t tokens = visible_tokens(paged, row);
    const uint32_t begin = tokens > shape.window ? tokens - shape.window : 0;
    for (uint32_t t = begin; t < tokens; ++t) {
      keys_.push_back(swa_cache + slot_of(paged, row, t, paged.page_size) * shape.head_dim);
    }
    if (shape.ratio == 0) return;
    REDECODE_CHECK_OP(paged.page_size % shape.ratio, ==, 0u);
    const uint32_t per_page = paged.page_size / shape.ratio;
    const uint64_t covered = uint64_t{paged.table_stride} * per_page;
    const auto push = [&](uint32_t entry) {
      keys_.push_back(extra_cache + slot_of(paged, row, entry, per_page) * shape.head_dim);
    };
    if (selected == nullptr) {
      for (uint32_t entry = 0; entry < tokens / shape.ratio; ++entry) push(entry);
      return;
    }
    const int32_t* list = selected + uint64_t{row} * selected_count;
    for (uint32_t i = 0; i < selected_count && list[i] >= 0; ++i) {
      if (static_cast<uint64_t>(list[i]) < covered) push(static_cast<uint32_t>(list[i]));
    }
  }

  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  const uint16_t* operator[](uint32_t index) const { return keys_[index]; }

 private:
  std::vector<const uint16_t*>& keys_;
};

void latent_item(HeadGroup& group, Isa isa, const LatentShape& shape, const LatentKeys& keys,
                 uint32_t heads, const float* q, const float* sink, float* out) {
  const LaneKernels& lanes = lane_kernels(isa);
  const uint32_t dim = shape.head_dim, padded = lane_padded(dim);
  group.begin(isa, heads, padded, padded, shape.split_keys, shape.scale);
  for (uint32_t h = 0; h < heads; ++h) {
    lanes.from_f32(q + uint64_t{h} * dim, dim, group.query(h));
  }
  for (uint32_t j = 0; j < shape.split_keys; ++j) group.set_value(j, group.key(j));
  uint32_t filled = 0;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    lanes.from_bf16(keys[i], dim, group.key(filled));
    if (++filled < shape.split_keys && i + 1 < keys.size()) continue;
    group.absorb(filled);
    filled = 0;
  }
  for (uint32_t h = 0; h < heads; ++h) {
    float* target = out + uint64_t{h} * dim;
    if (group.splits() == 0) {
      std::fill(target, target + dim, 0.0f);
      continue;
    }
    if (sink != nullptr) group.absorb_sink(h, sink[h]);
    const float* total = group.total(h);
    const float mass = group.mass(h);
    for (uint32_t d = 0; d < dim; ++d) target[d] = total[lane_place(d)] / mass;
  }
}

}  // namespace

void gqa_attention(Exec& exec, const GqaShape& shape, const PagedRows& paged, const float* q,
                   const float* k_cache, const float* v_cache, float* out) {
  REDECODE_CHECK_OP(shape.kv_heads, >, 0u);
  REDECODE_CHECK_OP(shape.heads % shape.kv_heads, ==, 0u);
  REDECODE_CHECK_OP(shape.split_keys, >, 0u);
  REDECODE_CHECK_OP(paged.page_size, >, 0u);
  exec.parallel(size_t{paged.rows} * shape.kv_heads, 1, [&](size_t begin, size_t end) {
    thread_local HeadGroup group;
    for (size_t item = begin; item < end; ++item) {
      gqa_item(group, exec.isa(), shape, paged, static_cast<uint32_t>(item / shape.kv_heads),
               static_cast<uint32_t>(item % shape.kv_heads), q, k_cache, v_cache, out);
    }
  });
}

void kv_store(Exec&, const float* k, uint64_t k_stride, const float* v, uint64_t v_stride,
              const int32_t* slots, uint32_t rows, uint32_t kv_dim, float* k_cache,
              float* v_cache) {
  // One thread: rows may share a slot, and their order decides.
  for (uint32_t row = 0; row < rows; ++row) {
    if (slots[row] < 0) continue;
    const uint64_t at = static_cast<uint64_t>(slots[row]) * kv_dim;
    std::memcpy(k_cache + at, k + row * k_stride, kv_dim * sizeof(float));
    std::memcpy(v_cache + at, v + row * v_stride, kv_dim * sizeof(float));
  }
}

void latent_attention(Exec& exec, const LatentShape& shape, const PagedRows& paged, const float* q,
                      const uint16_t* swa_cache, const uint16_t* extra_cache,
                      const int32_t* selected, uint32_t selected_count, const float* sink,
                      float* out) {
  REDECODE_CHECK_OP(shape.heads, >, 0u);
  REDECODE_CHECK_OP(shape.split_keys, >, 0u);
  REDECODE_CHECK_OP(paged.page_size, >, 0u);
  constexpr uint32_t kHeadsAtOnce = 8;
  const uint32_t groups = (shape.heads + kHeadsAtOnce - 1) / kHeadsAtOnce;
  exec.parallel(size_t{paged.rows} * groups, 1, [&](size_t begin, size_t end) {
    thread_local HeadGroup group;
    thread_local std::vector<const uint16_t*> list;
    for (size_t item = begin; item < end; ++item) {
      const uint32_t row = static_cast<uint32_t>(item / groups);
      const uint32_t head = static_cast<uint32_t>(item % groups) * kHeadsAtOnce;
      const LatentKeys keys(shape, paged, row, swa_cache, extra_cache, selected, selected_count,
                            list);
      const uint64_t at = (uint64_t{row} * shape.heads + head) * shape.head_dim;
      latent_item(group, exec.isa(), shape, keys, std::min(kHeadsAtOnce, shape.heads - head),
                  q + at, sink == nullptr ? nullptr : sink + head, out + at);
    }
  });
}

void latent_store(Exec&, const float* x, uint64_t x_stride, const int32_t* slots, uint32_t rows,
                  uint32_t dim, uint16_t* cache) {
  for (uint32_t row = 0; row < rows; ++row) {
    if (slots[row] < 0) continue;
    uint16_t* target = cache + static_cast<uint64_t>(slots[row]) * dim;
    const float* source = x + row * x_stride;
    for (uint32_t d = 0; d < dim; ++d) target[d] = bf16_from_f32(source[d]);
  }
}

}  // namespace redecode
