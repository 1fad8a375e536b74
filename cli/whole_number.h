// cli/whole_number.h - a check for 64-bit options: CLI11 alone wraps -1 and cuts what is too large.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace redecode {

// Accepts the digits of a number below 2^64 and nothing else.
inline CLI::Validator whole_number() {
  return CLI::Validator(
      [](const std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [at, failure] = std::from_chars(text.data(), end, value);
        const bool whole = failure == std::errc{} && at == end;
        return whole ? std::string() : "'" + text + "' is not a whole number from 0 to 2^64 - 1";
      },
      "UINT", "whole number");
}

}  // namespace redecode
