#include "engine/kernels/kernel_table.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "traces/check.h"

namespace redecode {

float Launch::real(size_t index) const {
  return std::bit_cast<float>(static_cast<uint32_t>(args[index].value));
}

Arg real_arg(float value, ArgKind kind) {
  return {static_cast<int64_t>(std::bit_cast<uint32_t>(value)), kind};
}

KernelId KernelTable::add(KernelInfo info) {
  for (const KernelInfo& known : kernels_) REDECODE_CHECK_OP(known.name, !=, info.name);
  REDECODE_CHECK_OP(kernels_.size(), <, size_t{std::numeric_limits<KernelId>::max()});
  kernels_.push_back(std::move(info));
  return static_cast<KernelId>(kernels_.size() - 1);
}

KernelId KernelTable::find(std::string_view name) const {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return static_cast<KernelId>(i);
  }
  REDECODE_CHECK_OP(name, ==, std::string_view("a kernel of this table"));
  return 0;
}

}  // namespace redecode
