// cli/check_litmus.h - `redecode check` of litmus files.
#pragma once
#include <string>

#include "cli/command.h"
#include "cli/timeline_files.h"

namespace redecode {

// True for a .litmus file and for a folder that holds some, however deep.
bool is_litmus_path(const std::string& path);

// Checks the file, or every .litmus file of the folder in order of path. Returns 0 when each gives
// what it expects and is clean after its fix; a file without expect lines must be clean. Else 1.
// Pictures are of a single file.
int check_litmus_path(const CommandContext& context, const std::string& path,
                      const PictureOptions& pictures = {});

// Prints the file in one style (format_litmus). Returns 0. Errors: as load_litmus.
int format_litmus_file(const CommandContext& context, const std::string& path);

}  // namespace redecode
