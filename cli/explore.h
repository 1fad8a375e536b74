// cli/explore.h - `redecode explore`: from a finding to an order that always fails, and the fix.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_explore(CLI::App& app, CommandContext& context);

}  // namespace redecode
