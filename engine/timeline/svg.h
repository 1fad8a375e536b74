// engine/timeline/svg.h - one finding as a picture: its ops on their streams, what is around them,
// the edges there are and the one that is missing.
#pragma once
#include <string>

#include "engine/plan/op_graph.h"
#include "traces/finding.h"

namespace redecode {

// An SVG document: equal inputs, equal bytes. The finding must be of this program.
std::string finding_svg(const Program& program, const OpGraph& graph, const Finding& finding);

}  // namespace redecode
