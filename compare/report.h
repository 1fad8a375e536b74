// compare/report.h - a comparison as people read it and as programs do.
//
// Both texts follow from the result alone: equal results give equal bytes on every machine.
#pragma once
#include <string>

#include "compare/compare_runs.h"

namespace redecode {

// One screen, at most 100 columns where names allow it, ends with a newline: verdict, first
// divergence, explanation, whose data the wrong rows hold, sessions.
std::string report_text(const CompareResult& result);

// One JSON object without a newline. Members are always present; what is unknown is null. Digests
// are 16 hex digits, bits 8 hex digits, both as strings.
std::string report_json(const CompareResult& result);

}  // namespace redecode
