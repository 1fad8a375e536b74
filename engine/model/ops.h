// engine/model/ops.h - Ops: launches of the exact kernels with their regions, as both model
// families need them.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/model/inputs.h"
#include "engine/model/kernel_ids.h"
#include "engine/model/weights.h"
#include "engine/plan/emitter.h"

namespace redecode {

// f32 activations [rows, cols] at an offset of a buffer, rows `stride` elements apart.
struct View {
  BufferId buffer;
  uint32_t cols = 0;
  uint32_t stride = 0;
  uint32_t first_col = 0;

  View columns(uint32_t first, uint32_t count) const {
    return {buffer, count, stride, first_col + first};
  }
};

// An op of a layer: its report name, and the lane it runs on.
struct OpSite {
  Lane lane = Lane::main;
  NameId name = 0;
};

class Ops {
 public:
  Ops(Emitter& emitter, const KernelIds& kernels, const InputLayout& layout, BufferId inputs,
      const Batch& batch)
      : e_(emitter), k_(kernels), in_(layout), inputs_(inputs), batch_(batch) {}

  uint32_t rows() const { return batch_.row_count(); }

  // A fresh [rows, cols] f32 transient owned by `lane`.
  View allocate(Lane lane, NameId name, uint32_t cols);
  void free(const View& view) { e_.free(view.buffer); }

  Region read(const View& v) const { return region(v, Access::read, rows()); }
  Region write(const View& v) const { return region(v, Access::write, rows()); }
  Region update(const View& v) const { return region(v, Access::update, rows()); }
  Region scratch(const View& v) const { return region(v, Access::scratch, rows()); }
  static Region region(const View& v, Access access, uint32_t rows);
  static Region whole(const Weight& w) { return {w.buffer, Access::read, 0, w.size_bytes()}; }
  // An i32 or f32 column of the inputs; u64 for the seed.
  Region column(uint64_t offset_bytes, uint32_t rows, uint32_t element_bytes = 4) const;
  Region page_table() const;
  Region positions() const { return column(in_.positions, rows()); }

  void embed(OpSite at, const Weight& table, const View& out);
  void gather_outputs(OpSite at, const View& x, const View& out);
  void rms_norm(OpSite at, const View& x, const Weight& weight, float eps, const View& out);
  // Each of `heads` parts of a row by itself, without a weight; in place.
  void head_norm(OpSite at, const View& x, uint32_t heads, float eps);
  void gemm(OpSite at, const Weight& w, const View& x, const View& y, uint32_t rows);
  void gemm(OpSite at, const Weight& w, const View& x, const View& y) { gemm(at, w, x, y, rows()); }
  void grouped_gemm(OpSite at, const Weight& w, uint32_t groups, const View& x, const View& y);
  struct Rope {
    uint32_t heads = 1, head_dim = 0, offset = 0, rope_dim = 0;
    float theta = 10000.0f;
    bool inverse = false;
  };
  void rope(OpSite at, const View& x, const Rope& shape);
  void swiglu(OpSite at, const View& gate_up, const View& out);
  void add_into(OpSite at, const View& a, const View& b);
  // logits [outputs, vocab] of `buffer` -> sampled tokens.
  void sample(OpSite at, BufferId logits, uint32_t vocab, BufferId tokens);

  Emitter& emitter() { return e_; }
  const KernelIds& kernels() const { return k_; }
  const InputLayout& layout() const { return in_; }
  const Batch& batch() const { return batch_; }

 private:
  Emitter& e_;
  const KernelIds& k_;
  const InputLayout& in_;
  BufferId inputs_;
  const Batch& batch_;
};

inline Arg shape_arg(int64_t value) { return {value, ArgKind::shape}; }

}  // namespace redecode
