// traces/error.h - how the world being wrong is said: one exception type, caught in main.
//
// Three species of trouble (ARCHITECTURE.md): a bug of ours is a CHECK (check.h) and aborts; the
// world being wrong throws Error; an expected outcome (pool exhausted, divergence) is a return
// value.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace redecode {

enum class ErrorCode : int {
  usage,         // the caller asked for something that has no meaning (exit 2)
  corrupt,       // bytes that fail a checksum or break the format (exit 3)
  truncated,     // a file that ends inside a chunk (exit 3)
  missing,       // a file or directory that is not there (exit 3)
  version,       // a file of another format version (exit 3)
  incomparable,  // two runs of different traces, models or kernel sets (exit 3)
  limit,         // a declared size above its cap (exit 3)
  environment,   // no GPU, disk full, permission denied (exit 4)
};

// Process exit status of an error, as in README.md: 2 usage, 3 unusable input, 4 environment.
int exit_code(ErrorCode code);
std::string_view error_name(ErrorCode code);

// `message` says what and what to do; `context` says where (file, byte offset, step) and may be
// empty.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, std::string context = {});
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& context() const { return context_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::string context_;
};

}  // namespace redecode
