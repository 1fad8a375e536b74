// traces/edit/same_file.h - a tool never writes over what it reads.
#pragma once
#include <filesystem>

#include "traces/error.h"

namespace redecode {

// Errors: usage, when both name one file.
inline void refuse_same_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored))
    throw Error(ErrorCode::usage, "input and output are the same file: name another output",
                to.string());
}

}  // namespace redecode
