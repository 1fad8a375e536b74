// cli/explore_text.h - what explorations and repairs come to, in words and as JSON.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/explore/explorer.h"
#include "engine/repair/repair.h"
#include "traces/json_writer.h"

namespace redecode {

// "1 of 1 guided, 311 of 1,000 random (first: order 3), ..."
std::string searches_text(const Exploration& e);
void searches_json(const Exploration& e, JsonWriter& json);

// The minimal set of edges and the ways to mend each race; races of equal ops and buffers in other
// layers are told once, with their number.
std::string repair_text(const Program& program, std::span<const Finding> races, const Repair& r);
void repair_json(const Program& program, std::span<const Finding> races, const Repair& r,
                 JsonWriter& json);

}  // namespace redecode
