// compare/row_output.h - the first place where two outputs of one row differ.
#pragma once
#include <optional>

#include "compare/divergence.h"

namespace redecode {

// Order and tolerance as in divergence.h; `step` is left to the caller. Both are the same row of
// the batch; a different request or position is Place::rows.
std::optional<Divergence> compare_row(const RowOutput& golden, const RowOutput& candidate,
                                      uint32_t max_ulps = 0);

// True when no bit that was stored differs; the quick way for rows that agree.
bool same_bits(const RowOutput& golden, const RowOutput& candidate);

}  // namespace redecode
