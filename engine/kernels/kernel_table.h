// engine/kernels/kernel_table.h - KernelTable: kernel id -> name, argument kinds, body.
//
// Built in main (or a test) and passed down; nothing registers itself.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kernels/exec.h"
#include "traces/program.h"

namespace redecode {

// One launch as a body sees it: the addresses of its operands (buffer base + offset) in order, the
// scalar arguments in order.
struct Launch {
  std::span<std::byte* const> operands;
  std::span<const Arg> args;
  Exec& exec;

  template <class T>
  T* at(size_t operand) const {
    return reinterpret_cast<T*>(operands[operand]);
  }
  int64_t arg(size_t index) const { return args[index].value; }
  float real(size_t index) const;  // the argument's bits as a float
};

using KernelBody = void (*)(const Launch&);

struct KernelInfo {
  std::string name;
  uint32_t operand_count = 0;
  uint32_t arg_count = 0;
  KernelBody body = nullptr;
};

class KernelTable {
 public:
  // Returns the id; names are unique (CHECK).
  KernelId add(KernelInfo info);
  const KernelInfo& operator[](KernelId id) const { return kernels_[id]; }
  KernelId find(std::string_view name) const;  // CHECKs that it exists
  size_t size() const { return kernels_.size(); }

 private:
  std::vector<KernelInfo> kernels_;
};

Arg real_arg(float value, ArgKind kind = ArgKind::shape);

}  // namespace redecode
