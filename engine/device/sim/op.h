// engine/device/sim/op.h - Op: one launch, copy or fill with everything it needs, ready to run.
//
// Addresses and arguments are resolved when the op is made and kept in an arena, so that the
// program it came from may change or go. Making an op allocates nothing once the arena has grown.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "engine/memory/bindings.h"
#include "traces/program.h"

namespace redecode {

struct Op {
  KernelBody body = nullptr;
  uint32_t command = 0;
  uint32_t first_operand = 0, operand_count = 0;
  uint32_t first_arg = 0, arg_count = 0;
  uint64_t size_bytes = 0;  // copy, fill
  CommandKind kind = CommandKind::launch;
};

// True for the commands that become ops on a stream: the only ones that an Order chooses among.
constexpr bool is_stream_op(CommandKind kind) {
  return kind == CommandKind::launch || kind == CommandKind::copy || kind == CommandKind::fill;
}

class OpArena {
 public:
  // Resolves a launch, copy, fill or host command. A kernel id out of range, a number of operands
  // or arguments other than the kernel's, a copy or fill outside its buffer or a buffer without
  // address is a bug (CHECK).
  Op resolve(const KernelTable& kernels, const Program& program, const Bindings& bindings,
             uint32_t command);

  // A kernel without a body touches nothing.
  void run(const Op& op, Exec& exec) const;

  // Forgets all ops and keeps the memory.
  void clear();

 private:
  std::vector<std::byte*> operands_;
  std::vector<Arg> args_;
};

}  // namespace redecode
