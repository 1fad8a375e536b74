// cli/check.h - `redecode check`: hazards of a trace or of a model, without running a value.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_check(CLI::App& app, CommandContext& context);

}  // namespace redecode
