// cli/traffic.h - `redecode traffic`: requests to an OpenAI-compatible server, counted and
// measured.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_traffic(CLI::App& app, CommandContext& context);

}  // namespace redecode
