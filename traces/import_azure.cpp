#include "traces/import_azure.h"

#include <charconv>

#include "traces/byte_source.h"
#include "traces/limits.h"
#include "traces/line_reader.h"

namespace redecode {
namespace {

constexpr std::string_view kColumns = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr size_t kMinTimeBytes = 19;  // "YYYY-MM-DD HH:MM:SS"
constexpr size_t kMaxFractionDigits = 7;
constexpr uint64_t kTicksPerSecond = 10'000'000;

// Days since 1 January of the year 0 in the Gregorian calendar.
constexpr uint64_t day_number(uint64_t year, uint64_t month, uint64_t day) {
  const uint64_t y = month > 2 ? year : year - 1;  // a year begins in March here
  const uint64_t m = month > 2 ? month - 3 : month + 9;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
}

constexpr unsigned days_in_month(uint64_t year, uint64_t month) {
  constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

// Digits only, no sign; false when `text` is anything else or above the cap.
bool read_digits(std::string_view text, uint64_t cap, uint64_t& out) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && out <= cap;
}

bool read_fraction(std::string_view text, uint64_t& ticks) {
  ticks = 0;
  if (text.empty()) return true;
  if (text.front() != '.' || text.size() < 2 || text.size() > kMaxFractionDigits + 1) return false;
  if (!read_digits(text.substr(1), kTicksPerSecond - 1, ticks)) return false;
  for (size_t digits = text.size() - 1; digits < kMaxFractionDigits; ++digits) ticks *= 10;
  return true;
}

// "2023-11-16 18:15:46.6805900" in units of 100 ns.
bool read_time(std::string_view text, uint64_t& ticks) {
  if (text.size() < kMinTimeBytes || text[4] != '-' || text[7] != '-' || text[10] != ' ' ||
      text[13] != ':' || text[16] != ':')
    return false;
  uint64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, fraction = 0;
  if (!read_digits(text.substr(0, 4), 9999, year) || !read_digits(text.substr(5, 2), 12, month) ||
      !read_digits(text.substr(8, 2), 31, day) || !read_digits(text.substr(11, 2), 23, hour) ||
      !read_digits(text.substr(14, 2), 59, minute) ||
      !read_digits(text.substr(17, 2), 60, second) ||
      !read_fraction(text.substr(kMinTimeBytes), fraction))
    return false;
  if (year == 0 || month == 0 || day == 0 || day > days_in_month(year, month)) return false;
  const uint64_t seconds = ((day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
  ticks = seconds * kTicksPerSecond + fraction;
  return true;
}

AzureRow read_row(std::string_view line, const LineReader& lines) {
  const size_t first = line.find(',');
  const size_t second = first == std::string_view::npos ? first : line.find(',', first + 1);
  if (second == std::string_view::npos || line.find(',', second + 1) != std::string_view::npos)
    lines.fail("line does not have three fields");
  AzureRow row;
  if (!read_time(line.substr(0, first), row.arrival_100ns))
    lines.fail("time is not YYYY-MM-DD HH:MM:SS.fffffff");
  uint64_t context = 0, generated = 0;
  if (!read_digits(line.substr(first + 1, second - first - 1), limits::kImportTokens, context))
    lines.fail("ContextTokens is not a whole number up to " + std::to_string(limits::kImportTokens),
               first + 1);
  if (!read_digits(line.substr(second + 1), limits::kImportTokens, generated))
    lines.fail(
        "GeneratedTokens is not a whole number up to " + std::to_string(limits::kImportTokens),
        second + 1);
  row.context_tokens = static_cast<uint32_t>(context);
  row.generated_tokens = static_cast<uint32_t>(generated);
  return row;
}

}  // namespace

std::vector<AzureRow> parse_azure(std::string_view text, const std::string& name) {
  LineReader lines(text, name);
  std::string_view line;
  if (!lines.next(line) || line != kColumns)
    lines.fail("first line is not \"" + std::string(kColumns) + '"');
  std::vector<AzureRow> rows;
  uint64_t start_100ns = 0;
  while (lines.next(line)) {
    if (line.empty()) continue;
    if (rows.size() == limits::kImportRows) lines.fail("too many rows", 0, ErrorCode::limit);
    AzureRow row = read_row(line, lines);
    if (rows.empty()) start_100ns = row.arrival_100ns;
    if (row.arrival_100ns < start_100ns) lines.fail("time is before the first row's");
    row.arrival_100ns -= start_100ns;
    rows.push_back(row);
  }
  return rows;
}

std::vector<AzureRow> import_azure(const std::filesystem::path& path) {
  return parse_azure(read_text_file(path, limits::kImportFileBytes), path.string());
}

}  // namespace redecode
