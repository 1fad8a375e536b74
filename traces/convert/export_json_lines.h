// traces/convert/export_json_lines.h - every record of a trace or run as one line of JSON, in file
// order.
#pragma once
#include <filesystem>

#include "traces/convert/byte_sink.h"
#include "traces/convert/export_result.h"

namespace redecode {

// {"step": {...}}, {"output": ...}, {"event": ...}, {"gap": ...}, {"exchange": ...} or {"finding":
// ...}: as `redecode trace dump --json` has them. Errors: as TraceReader; environment.
ExportResult export_json_lines(const std::filesystem::path& path, ByteSink& out);

}  // namespace redecode
