// cli/record.h - `redecode record`: a workload served by the engine, written to a trace.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_record(CLI::App& app, CommandContext& context);

}  // namespace redecode
