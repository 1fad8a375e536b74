// cli/trace_command.h - `redecode trace info|dump|verify`: what is in a file.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_trace(CLI::App& app, CommandContext& context);

}  // namespace redecode
