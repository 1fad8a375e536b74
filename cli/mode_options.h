// cli/mode_options.h - every field of a Mode as a flag and as an environment variable; the flag
// wins.
//
// --streams single is REDECODE_STREAMS=single, and so on. An empty variable counts as not set.
#pragma once
#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <vector>

#include "traces/mode.h"

namespace redecode {

class ModeOptions {
 public:
  static constexpr size_t kFieldCount = 12;

  // Adds the flags to a command. This object must outlive the parse.
  void add_to(CLI::App& command);

  // `defaults` changed by the environment, then by the flags. Errors: usage, with the flag or the
  // variable as context, for a value that names nothing.
  Mode resolve(const Mode& defaults = {}) const;

 private:
  std::array<std::string, kFieldCount> texts_;
  std::array<CLI::Option*, kFieldCount> options_{};
  std::vector<std::string> inject_;
};

// "NAME=value" of all variables whose names start with REDECODE_, sorted: what headers keep.
std::vector<std::string> environment_entries();

// Mode as a JSON object.
std::string mode_json(const Mode& mode);

}  // namespace redecode
