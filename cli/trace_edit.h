// cli/trace_edit.h - `redecode trace recover`, `cut` and `merge`: traces that make traces.
#pragma once
#include "cli/command.h"

namespace redecode {

// Adds the subcommands to `trace`.
void add_trace_edit(CLI::App& trace, CommandContext& context);

}  // namespace redecode
