// cli/doctor.h - `redecode doctor`: what this machine and this build can do.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_doctor(CLI::App& app, CommandContext& context);

}  // namespace redecode
