#include "engine/model/ops.h"

#include "traces/check.h"

namespace redecode {

Region Ops::region(const View& v, Access access, uint32_t rows) {
  const uint64_t stride_bytes = uint64_t{v.stride} * 4;
  return {v.buffer, access, uint64_t{v.first_col} * 4,
          (rows - 1) * stride_bytes + uint64_t{v.cols} * 4, static_cast<uint32_t>(stride_bytes)};
}

View Ops::allocate(Lane lane, NameId name, uint32_t cols) {
  return {e_.allocate(lane, name, uint64_t{rows()} * cols * 4), cols, cols, 0};
}

Region Ops::column(uint64_t offset_bytes, uint32_t rows, uint32_t element_bytes) const {
  return {inputs_, Access::read, offset_bytes, uint64_t{rows} * element_bytes, element_bytes};
}

Region Ops::page_table() const {
  const uint32_t stride_bytes = in_.table_stride * 4;
  return {inputs_, Access::read, in_.page_table, uint64_t{rows()} * stride_bytes, stride_bytes};
}

void Ops::embed(OpSite at, const Weight& table, const View& out) {
  e_.launch(at.lane, k_.embed, at.name, {whole(table), column(in_.tokens, rows()), write(out)},
            {shape_arg(static_cast<int64_t>(table.dtype)), shape_arg(table.rows),
             shape_arg(table.cols), shape_arg(rows())});
}

void Ops::gather_outputs(OpSite at, const View& x, const View& out) {
  const uint32_t count = batch_.output_count();
  e_.launch(at.lane, k_.gather_rows, at.name,
            {read(x), column(in_.output_rows, count), region(out, Access::write, count)},
            {shape_arg(x.cols), shape_arg(count)});
}

void Ops::rms_norm(OpSite at, const View& x, const Weight& weight, float eps, const View& out) {
  e_.launch(at.lane, k_.rms_norm, at.name, {read(x), whole(weight), write(out)},
            {shape_arg(x.stride), shape_arg(out.stride), shape_arg(x.cols), real_arg(eps),
             shape_arg(rows()), shape_arg(1)});
}

void Ops::head_norm(OpSite at, const View& x, uint32_t heads, float eps) {
  REDECODE_CHECK_OP(x.cols, ==, x.stride);
  const uint32_t dim = x.cols / heads;
  e_.launch(at.lane, k_.rms_norm, at.name, {update(x), {x.buffer}, {x.buffer}},
            {shape_arg(dim), shape_arg(dim), shape_arg(dim), real_arg(eps),
             shape_arg(rows() * heads), shape_arg(0)});
}

void Ops::gemm(OpSite at, const Weight& w, const View& x, const View& y, uint32_t count) {
  REDECODE_CHECK_OP(w.cols, ==, x.cols);
  REDECODE_CHECK_OP(w.rows, ==, y.cols);
  e_.launch(at.lane, k_.gemm, at.name,
            {whole(w), region(x, Access::read, count), region(y, Access::write, count)},
            {shape_arg(static_cast<int64_t>(w.dtype)), shape_arg(w.rows), shape_arg(w.cols),
             shape_arg(x.stride), shape_arg(y.stride), shape_arg(count)});
}

void Ops::grouped_gemm(OpSite at, const Weight& w, uint32_t groups, const View& x, const View& y) {
  REDECODE_CHECK_OP(w.cols * groups, ==, x.cols);
  REDECODE_CHECK_OP(w.rows, ==, y.cols);
  e_.launch(at.lane, k_.grouped_gemm, at.name, {whole(w), read(x), write(y)},
            {shape_arg(static_cast<int64_t>(w.dtype)), shape_arg(groups),
             shape_arg(w.rows / groups), shape_arg(w.cols), shape_arg(rows())});
}

void Ops::rope(OpSite at, const View& x, const Rope& shape) {
  e_.launch(at.lane, k_.rope, at.name, {update(x), positions()},
            {shape_arg(x.stride), shape_arg(shape.heads), shape_arg(shape.head_dim),
             shape_arg(shape.offset), shape_arg(shape.rope_dim), real_arg(shape.theta),
             shape_arg(shape.inverse ? 1 : 0), shape_arg(rows())});
}

void Ops::swiglu(OpSite at, const View& gate_up, const View& out) {
  e_.launch(at.lane, k_.swiglu, at.name, {read(gate_up), write(out)},
            {shape_arg(out.cols), shape_arg(rows())});
}

void Ops::add_into(OpSite at, const View& a, const View& b) {
  REDECODE_CHECK_OP(a.cols, ==, a.stride);
  REDECODE_CHECK_OP(b.cols, ==, b.stride);
  e_.launch(at.lane, k_.add_into, at.name, {update(a), read(b)},
            {shape_arg(int64_t{rows()} * a.cols)});
}

void Ops::sample(OpSite at, BufferId logits, uint32_t vocab, BufferId tokens) {
  const uint32_t count = batch_.output_count();
  const uint64_t row_bytes = uint64_t{vocab} * 4;
  e_.launch(at.lane, k_.sample, at.name,
            {{logits, Access::read, 0, count * row_bytes, static_cast<uint32_t>(row_bytes)},
             column(in_.temperature, count),
             column(in_.top_k, count),
             column(in_.top_p, count),
             column(in_.min_p, count),
             column(in_.seed, count, 8),
             column(in_.sample_position, count),
             {tokens, Access::write, 0, uint64_t{count} * 4, 4}},
            {shape_arg(vocab), shape_arg(count)});
}

}  // namespace redecode
