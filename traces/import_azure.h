// traces/import_azure.h - requests of an Azure LLM inference trace (CSV): times and lengths.
//
// First line "TIMESTAMP,ContextTokens,GeneratedTokens", then one request a line:
// "2023-11-16 18:15:46.6805900,374,44". LF or CRLF; the last line may lack its end; up to 7
// fractional digits. Times come out relative to the first row.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

struct AzureRow {
  uint64_t arrival_100ns = 0;     // units of 100 ns since the first row
  uint32_t context_tokens = 0;    // prompt
  uint32_t generated_tokens = 0;  // output
  bool operator==(const AzureRow&) const = default;
};

// `name` is for messages. Errors: corrupt (a row before the first row's time included), limit
// (traces/limits.h): each with line and byte offset.
std::vector<AzureRow> parse_azure(std::string_view text, const std::string& name);
// Errors: as parse_azure; missing, environment.
std::vector<AzureRow> import_azure(const std::filesystem::path& path);

}  // namespace redecode
