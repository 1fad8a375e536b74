// recorder/workload_exchanges.h - the exchanges of a trace as rows of an arrival workload.
#pragma once
#include <filesystem>
#include <vector>

#include "recorder/workload_arrivals.h"

namespace redecode {

// A row an exchange, in file order. A prompt whose tokens were not counted has one for every 4 of
// its bytes, at least one; an answer whose tokens were not counted is as long as was asked for, or
// 16 tokens. Block hashes are kept where there are no more of them than blocks of
// kMooncakeBlockTokens: equal hashes give equal tokens.
// Errors: as TraceReader; usage (the trace holds no exchange).
std::vector<ArrivalRow> exchange_rows(const std::filesystem::path& path);

}  // namespace redecode
