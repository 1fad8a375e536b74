#include "traces/convert/unix_time.h"

#include <cmath>

namespace redecode {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

// Days since 1970-01-01 in the Gregorian calendar.
constexpr int64_t day_number(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month > 2 ? year : year - 1;  // a year begins in March here
  const int64_t m = month > 2 ? month - 3 : month + 9;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}
static_assert(day_number(1970, 1, 1) == 0 && day_number(2000, 3, 1) == 11017);

constexpr int64_t days_in_month(int64_t year, int64_t month) {
  constexpr int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

// Takes exactly `count` digits off the front.
bool take_digits(std::string_view& text, size_t count, int64_t& out) {
  if (text.size() < count) return false;
  out = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

bool take_fraction(std::string_view& text, int64_t& fraction_us) {
  fraction_us = 0;
  if (!take(text, ".,")) return true;
  int64_t unit_us = kSecondUs;
  size_t digits = 0;
  for (int64_t digit = 0; take_digits(text, 1, digit); ++digits) {
    unit_us /= 10;
    fraction_us += digit * unit_us;
  }
  return digits > 0;
}

bool take_offset(std::string_view& text, int64_t& offset_us) {
  offset_us = 0;
  if (text.empty() || take(text, "Zz")) return text.empty();
  const bool west = text.front() == '-';
  int64_t hours = 0, minutes = 0;
  if (!take(text, "+-") || !take_digits(text, 2, hours)) return false;
  take(text, ":");
  if (!take_digits(text, 2, minutes) || hours > 23 || minutes > 59) return false;
  offset_us = (hours * 60 + minutes) * 60 * kSecondUs * (west ? -1 : 1);
  return text.empty();
}

}  // namespace

std::optional<int64_t> unix_us_of(std::string_view text) {
  int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int64_t fraction_us = 0, offset_us = 0;
  const bool read = take_digits(text, 4, year) && take(text, "-") && take_digits(text, 2, month) &&
                    take(text, "-") && take_digits(text, 2, day) && take(text, "Tt ") &&
                    take_digits(text, 2, hour) && take(text, ":") && take_digits(text, 2, minute) &&
                    take(text, ":") && take_digits(text, 2, second) &&
                    take_fraction(text, fraction_us) && take_offset(text, offset_us);
  if (!read || year < 1970 || month < 1 || month > 12 || day < 1 ||
      day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  const int64_t seconds = ((day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
  const int64_t at_us = seconds * kSecondUs + fraction_us - offset_us;
  if (at_us < 0) return std::nullopt;
  return at_us;
}

std::optional<int64_t> unix_us_of(double number) {
  if (!(number >= 0) || number >= 1e20) return std::nullopt;
  if (number < 1e11) return static_cast<int64_t>(std::round(number * 1e6));
  if (number < 1e14) return static_cast<int64_t>(std::round(number * 1e3));
  if (number < 1e17) return static_cast<int64_t>(std::round(number));
  return static_cast<int64_t>(std::round(number / 1e3));
}

}  // namespace redecode
