// traces/convert/export_result.h - ExportResult: what an export wrote, and what must be said of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace_file.h"

namespace redecode {

struct ExportResult {
  uint64_t items = 0;                // lines, events or rows, as `unit` says
  std::string unit;                  // plural, for people
  FileEnd end = FileEnd::clean;      // of the input
  std::vector<std::string> notices;  // one sentence each
};

}  // namespace redecode
