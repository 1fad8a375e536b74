// cli/replay.h - `redecode replay`: a recorded trace decoded again in a chosen mode.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_replay(CLI::App& app, CommandContext& context);

}  // namespace redecode
