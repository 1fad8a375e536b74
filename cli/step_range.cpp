#include "cli/step_range.h"

#include <charconv>
#include <string>

#include "traces/error.h"

namespace redecode {
namespace {

StepIndex parse_step(std::string_view text, std::string_view whole) {
  StepIndex out = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failure != std::errc{} || end != text.data() + text.size())
    throw Error(ErrorCode::usage, "'" + std::string(whole) + "' is not A..B with numbers of steps",
                "--steps");
  return out;
}

}  // namespace

StepRange parse_step_range(std::string_view text) {
  StepRange range;
  if (text.empty()) return range;
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    range.first = range.last = parse_step(text, text);
    return range;
  }
  if (text == "..") parse_step("", text);
  if (dots != 0) range.first = parse_step(text.substr(0, dots), text);
  if (dots + 2 != text.size()) range.last = parse_step(text.substr(dots + 2), text);
  if (range.first > range.last)
    throw Error(ErrorCode::usage, "the range is empty: " + std::string(text), "--steps");
  return range;
}

}  // namespace redecode
