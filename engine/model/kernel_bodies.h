// engine/model/kernel_bodies.h - bodies of the exact set, by group; each fills its part of
// KernelIds.
#pragma once
#include "engine/kernels/attention.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/matrix.h"
#include "engine/model/kernel_ids.h"

namespace redecode {

void add_dense_kernels(KernelTable& table, KernelIds& ids);
void add_attention_kernels(KernelTable& table, KernelIds& ids);
void add_indexer_kernels(KernelTable& table, KernelIds& ids);
void add_moe_kernels(KernelTable& table, KernelIds& ids);

// The matrix behind operand `operand`, of the dtype, rows and cols that start at argument `arg`.
Matrix matrix_at(const Launch& l, size_t operand, size_t arg);
// Page table and positions operands, with table_stride, page_size and rows as arguments.
PagedRows paged_at(const Launch& l, size_t table_operand, size_t positions_operand, size_t arg);

}  // namespace redecode
