// traces/check.h - always-on assertions for bugs of ours; they print their operands and abort.
#pragma once
#include <sstream>
#include <string>

namespace redecode::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& operands);

template <class A, class B>
std::string show_operands(const A& a, const B& b) {
  std::ostringstream out;
  out << a << " against " << b;
  return out.str();
}
}  // namespace redecode::detail

#define REDECODE_CHECK(condition)                                           \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::redecode::detail::check_failed(__FILE__, __LINE__, #condition, {}); \
  } while (false)

#define REDECODE_CHECK_OP(a, op, b)                                                  \
  do {                                                                               \
    if (!((a)op(b))) [[unlikely]]                                                    \
      ::redecode::detail::check_failed(__FILE__, __LINE__, #a " " #op " " #b,        \
                                       ::redecode::detail::show_operands((a), (b))); \
  } while (false)
