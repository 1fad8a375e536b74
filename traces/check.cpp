#include "traces/check.h"

#include <cstdio>
#include <cstdlib>

namespace redecode::detail {

void check_failed(const char* file, int line, const char* expression, const std::string& operands) {
  std::fprintf(stderr, "redecode: bug: %s:%d: %s%s%s\n", file, line, expression,
               operands.empty() ? "" : ", was ", operands.c_str());
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace redecode::detail
