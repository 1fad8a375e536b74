#include "engine/kernels/moe.h"
#include "engine/model/kernel_bodies.h"

namespace redecode {
namespace {

uint32_t u32(const Launch& l, size_t arg) { return static_cast<uint32_t>(l.arg(arg)); }

// [logits, bias, ids, weights] (experts, k, scaling, rows)
void moe_route_body(const Launch& l) {
  moe_route(l.exec, l.at<const float>(0), l.at<const float>(1), u32(l, 3), u32(l, 0), u32(l, 1),
            l.real(2), l.at<int32_t>(2), l.at<float>(3));
}

// [gate, up, down, x, ids, weights, scratch, out] (dtype, dim, inter, experts, k, rows)
void moe_experts_body(const Launch& l) {
  const auto dtype = static_cast<DType>(l.arg(0));
  const uint32_t dim = u32(l, 1), inter = u32(l, 2);
  Experts e;
  e.gate = {dtype, inter, dim, l.operands[0]};
  e.up = {dtype, inter, dim, l.operands[1]};
  e.down = {dtype, dim, inter, l.operands[2]};
  e.gate_stride_bytes = e.up_stride_bytes = matrix_bytes(dtype, inter, dim);
  e.down_stride_bytes = matrix_bytes(dtype, dim, inter);
  e.count = u32(l, 3);
  moe_experts(l.exec, e, l.at<const float>(3), u32(l, 5), u32(l, 4), l.at<const int32_t>(4),
              l.at<const float>(5), l.at<float>(6), l.at<float>(7));
}

}  // namespace

void add_moe_kernels(KernelTable& table, KernelIds& ids) {
  ids.moe_route = table.add({"moe_route", 4, 4, moe_route_body});
  ids.moe_experts = table.add({"moe_experts", 8, 6, moe_experts_body});
}

}  // namespace redecode
