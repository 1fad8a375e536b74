// engine/device/sim/op.cpp - resolving and running one op.
#include "engine/device/sim/op.h"

#include <cstring>

#include "traces/check.h"

namespace redecode {
namespace {

void check_inside(const Region& region, const Binding& binding) {
  REDECODE_CHECK_OP(region.offset_bytes, <=, binding.size_bytes);
  REDECODE_CHECK_OP(region.size_bytes, <=, binding.size_bytes - region.offset_bytes);
}

}  // namespace

Op OpArena::resolve(const KernelTable& kernels, const Program& program, const Bindings& bindings,
                    uint32_t command) {
  const Command& c = program.commands[command];
  const auto regions = program.operands_of(c);
  const auto args = program.args_of(c);
  Op op;
  op.kind = c.kind;
  op.command = command;
  op.first_operand = static_cast<uint32_t>(operands_.size());
  op.operand_count = c.region_count;
  op.first_arg = static_cast<uint32_t>(args_.size());
  op.arg_count = c.arg_count;
  operands_.resize(operands_.size() + regions.size());
  std::byte** operand = operands_.data() + op.first_operand;
  for (const Region& region : regions) {
    const Binding& binding = bindings.of(region.buffer);
    REDECODE_CHECK(binding.address != nullptr);
    *operand++ = binding.address + region.offset_bytes;
  }
  args_.insert(args_.end(), args.begin(), args.end());

  if (c.kind == CommandKind::copy || c.kind == CommandKind::fill) {
    REDECODE_CHECK_OP(regions.size(), ==, size_t{c.kind == CommandKind::copy ? 2u : 1u});
    op.size_bytes = regions[0].size_bytes;
    for (const Region& region : regions) {
      REDECODE_CHECK_OP(region.size_bytes, ==, op.size_bytes);
      check_inside(region, bindings.of(region.buffer));
    }
    if (c.kind == CommandKind::fill) REDECODE_CHECK_OP(args.size(), ==, size_t{1});
    return op;
  }
  if (c.kind == CommandKind::host && c.kernel == kNoKernel) {
    if (args.empty()) return op;  // it only declares what the host does by itself
    REDECODE_CHECK_OP(regions.size(), ==, size_t{1});
    op.kind = CommandKind::fill;
    op.size_bytes = regions[0].size_bytes;
    check_inside(regions[0], bindings.of(regions[0].buffer));
    return op;
  }
  REDECODE_CHECK_OP(size_t{c.kernel}, <, kernels.size());
  const KernelInfo& kernel = kernels[c.kernel];
  REDECODE_CHECK_OP(c.region_count, ==, kernel.operand_count);
  REDECODE_CHECK_OP(c.arg_count, ==, kernel.arg_count);
  op.body = kernel.body;
  return op;
}

void OpArena::run(const Op& op, Exec& exec) const {
  std::byte* const* const operands = operands_.data() + op.first_operand;
  const Arg* const args = args_.data() + op.first_arg;
  switch (op.kind) {
    case CommandKind::launch:
    case CommandKind::host:
      if (op.body != nullptr)
        op.body(Launch{{operands, op.operand_count}, {args, op.arg_count}, exec});
      return;
    case CommandKind::copy:
      std::memmove(operands[1], operands[0], op.size_bytes);
      return;
    case CommandKind::fill:
      std::memset(operands[0], static_cast<int>(args[0].value & 0xff), op.size_bytes);
      return;
    default:
      REDECODE_CHECK(false);
  }
}

void OpArena::clear() {
  operands_.clear();
  args_.clear();
}

}  // namespace redecode
