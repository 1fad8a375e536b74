// recorder/ring/breadcrumb.h - the file beside a trace that names the rings of a recording that
// runs, one a line; gone once the trace is closed.
#pragma once
#include <filesystem>

namespace redecode {

inline std::filesystem::path breadcrumb_path(const std::filesystem::path& trace) {
  std::filesystem::path out = trace;
  if (out.filename().empty()) out = out.parent_path();
  out += ".rings";
  return out;
}

}  // namespace redecode
