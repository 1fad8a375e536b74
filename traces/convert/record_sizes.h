// traces/convert/record_sizes.h - how many bytes the records of each kind take in a trace.
#pragma once
#include <filesystem>
#include <vector>

#include "traces/convert/stats.h"

namespace redecode {

// Of a file or of all files of a set, up to their last readable byte. Errors: as TraceReader.
std::vector<KindStats> record_sizes(const std::filesystem::path& path);

}  // namespace redecode
