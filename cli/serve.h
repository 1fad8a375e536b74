// cli/serve.h - `redecode serve`: an OpenAI-compatible endpoint over the engine, recorded on
// request.
#pragma once
#include "cli/command.h"

namespace redecode {

void add_serve(CLI::App& app, CommandContext& context);

}  // namespace redecode
