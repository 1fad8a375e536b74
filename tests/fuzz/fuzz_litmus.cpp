// The input is a litmus file. What parses must lower, check and format; formatted text must parse
// to the same verdicts.
#include <cstdint>
#include <string>

#include "engine/litmus/verdict.h"
#include "traces/check.h"
#include "traces/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  constexpr size_t kMostBytes = 2048;
  if (size > kMostBytes) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const LitmusReport report = report_litmus(parse_litmus(text, "fuzz"), "fuzz");
    const std::string formatted = format_litmus(text, "fuzz");
    REDECODE_CHECK(report_litmus(parse_litmus(formatted, "again"), "fuzz").found == report.found);
    REDECODE_CHECK(format_litmus(formatted, "again") == formatted);
  } catch (const Error&) {
  }
  return 0;
}
