// cli/record_proxy.h - `redecode record --proxy`: records the traffic of any OpenAI-compatible
// server from a place in front of it.
#pragma once
#include <cstdint>
#include <string>

#include "cli/command.h"

namespace redecode {

struct RecordProxyOptions {
  bool on = false;
  std::string upstream;
  std::string listen = "127.0.0.1:8001";
  uint32_t connections = 4096;
  uint32_t drain_s = 30;
};

void add_proxy_options(CLI::App& command, RecordProxyOptions& options);

// Serves until SIGINT or SIGTERM, then closes the trace `output` and prints a summary.
// Errors: usage, environment (cannot listen; the trace could not be written: traffic went on, and
// the error comes at the end).
int run_record_proxy(const CommandContext& context, const RecordProxyOptions& options,
                     const std::string& output, bool force);

}  // namespace redecode
