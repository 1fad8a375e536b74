// traces/convert/export_csv.h - a trace as tables of comma-separated values (RFC 4180 with LF line
// ends), the names of the columns in the first line.
//
// Times are microseconds as in the trace. A cell is empty where something is not known or was not
// said.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "traces/convert/byte_sink.h"
#include "traces/convert/export_result.h"

namespace redecode {

enum class CsvTable : uint8_t {
  steps,      // a row a step
  requests,   // a row a request, in the order in which they end; those that do not, at the end
  rows,       // a row a row of a step
  exchanges,  // a row an exchange, in the order of the file
};

std::string_view to_text(CsvTable);
bool from_text(std::string_view text, CsvTable& out);

// Errors: as TraceReader; usage (a run); environment (cannot write).
ExportResult export_csv(const std::filesystem::path& path, CsvTable table, ByteSink& out);

}  // namespace redecode
