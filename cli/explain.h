// cli/explain.h - `redecode explain`: what a check looks for, and what to do about it.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_explain(CLI::App& app, CommandContext& context);

}  // namespace redecode
