// traces/wrap.h - a label and a text wrapped under itself, as reports print them.
#pragma once
#include <string>
#include <string_view>

namespace redecode {

inline constexpr size_t kReportColumns = 100;

// `label` padded to `label_columns`, then `text` broken at spaces so that lines stay within
// kReportColumns where its words allow it; ends with a newline. Further lines are indented by
// `label_columns`.
std::string wrapped_entry(std::string_view label, size_t label_columns, std::string_view text);

}  // namespace redecode
