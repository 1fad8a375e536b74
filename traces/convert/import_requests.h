// traces/convert/import_requests.h - published request traces and request logs as a trace of
// exchanges: who asked when and for how much, without answers.
//
// Every request becomes an Exchange with ExchangeEnd::not_sent. Requests are written by time, equal
// times in the order of the file; start_us counts from the earliest request for openai, and is the
// trace's own time for mooncake and azure. Two passes over the file; memory: one line, and 24 bytes
// a request.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

enum class ImportFormat : uint8_t {
  mooncake,  // traces/import_mooncake.h
  azure,     // traces/import_azure.h
  openai,    // import_openai.h; a line without a time arrives with the one before it
};

std::string_view to_text(ImportFormat);
bool from_text(std::string_view text, ImportFormat& out);

struct ImportOptions {
  std::optional<ImportFormat> format;  // not said: by the first line that is not blank
  bool skip_bad = false;               // lines that cannot be read are counted and left out
  bool overwrite = false;
  std::string writer = "redecode";  // for the header
};

struct BadLine {
  uint64_t number = 0;  // from 1
  std::string reason;
};

struct ImportResult {
  ImportFormat format = ImportFormat::openai;
  uint64_t lines = 0;     // of the file, blank ones included
  uint64_t requests = 0;  // written
  uint64_t bad_lines = 0;
  std::vector<BadLine> first_bad;  // at most kBadLinesListed
  uint64_t without_time = 0;       // openai: requests whose line says no time
  bool sorted = true;              // false: the file was not in order of time
  uint64_t span_us = 0;            // from the first request to the last
};
inline constexpr size_t kBadLinesListed = 20;

// Writes the trace `to`. Errors: missing, environment; usage (same file, `to` exists, format not
// known); corrupt and limit, naming the line (with skip_bad: only when no line is left, or for more
// than limits::kImportRows requests).
ImportResult import_requests(const std::filesystem::path& from, const std::filesystem::path& to,
                             const ImportOptions& options = {});

std::string to_text(const ImportResult& result, const std::string& from, const std::string& to);
std::string to_json(const ImportResult& result, const std::string& from, const std::string& to);

}  // namespace redecode
