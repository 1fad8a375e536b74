// cli/explore_litmus.h - `redecode explore` of a litmus file: all by contents, no values.
#pragma once
#include <string>

#include "cli/command.h"
#include "engine/explore/explorer.h"

namespace redecode {

// Returns 1 when an order goes wrong, else 0.
int explore_litmus(const CommandContext& context, const std::string& path,
                   const ExploreOptions& options);

}  // namespace redecode
