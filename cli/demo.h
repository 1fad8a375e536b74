// cli/demo.h - `redecode demo`: the whole story on a built-in workload.
#pragma once
#include "cli/command.h"

namespace redecode {

// Exit 0 when the story could be told, whatever it found.
void add_demo(CLI::App& app, CommandContext& context);

}  // namespace redecode
