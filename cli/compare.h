// cli/compare.h - `redecode compare`: two runs of one trace, bit for bit.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_compare(CLI::App& app, CommandContext& context);

}  // namespace redecode
