// cli/bench_record.h - `redecode bench record`: what recording costs, measured on this machine.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_bench(CLI::App& app, CommandContext& context);

}  // namespace redecode
