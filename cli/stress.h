// cli/stress.h - `redecode stress`: sessions x rounds under many orders, and the corruption rate
// with its interval.
#pragma once
#include "cli/command.h"

namespace redecode {

// Exit 0 when no session was corrupted, 1 otherwise.
void add_stress(CLI::App& app, CommandContext& context);

}  // namespace redecode
