#include "traces/error.h"

namespace redecode {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return 2;
    case ErrorCode::environment:
      return 4;
    default:
      return 3;
  }
}

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::truncated:
      return "truncated";
    case ErrorCode::missing:
      return "missing";
    case ErrorCode::version:
      return "version";
    case ErrorCode::incomparable:
      return "incomparable";
    case ErrorCode::limit:
      return "limit";
    case ErrorCode::environment:
      return "environment";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message, std::string context)
    : std::runtime_error(context.empty() ? message : context + ": " + message),
      code_(code),
      message_(std::move(message)),
      context_(std::move(context)) {}

}  // namespace redecode
