// traces/convert/unix_time.h - times as request logs write them, in microseconds.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace redecode {

// "2024-05-01T12:00:00.123456Z": a space may stand for the T; "Z", "+02:00", "+0200" or nothing
// (then UTC) at the end; digits behind the sixth of the fraction are dropped. Years 1970 to 9999.
// Nothing when it is anything else.
std::optional<int64_t> unix_us_of(std::string_view text);

// A number, by its size: seconds below 1e11 (year 5138), milliseconds below 1e14, microseconds
// below 1e17, nanoseconds below 1e20. Nothing when negative, larger or not finite.
std::optional<int64_t> unix_us_of(double number);

// Whether a time counts from 1970 rather than from the start of its log: 2001 or later.
constexpr bool is_unix_us(int64_t time_us) { return time_us >= int64_t{1'000'000'000'000'000}; }

}  // namespace redecode
