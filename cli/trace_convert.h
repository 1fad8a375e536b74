// cli/trace_convert.h - `redecode trace stats`, `import` and `export`: traces from and to other
// formats, and what they add up to.
#pragma once
#include "cli/command.h"

namespace redecode {

// Adds the subcommands to `trace`.
void add_trace_convert(CLI::App& trace, CommandContext& context);

}  // namespace redecode
