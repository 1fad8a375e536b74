// traces/import_mooncake.h - requests of a Mooncake trace (JSON Lines): times, lengths, prefix
// hashes.
//
// One object a line: "timestamp" (ms), "input_length", "output_length" (tokens), "hash_ids"
// (optional; one number a block of 512 prompt tokens, equal leading numbers: equal prefix). Other
// members are ignored; blank lines too. Numbers must be whole. Rows come out in file order.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

struct MooncakeRow {
  uint64_t arrival_ms = 0;
  uint32_t input_length = 0;   // tokens
  uint32_t output_length = 0;  // tokens
  std::vector<uint32_t> hash_ids;
  bool operator==(const MooncakeRow&) const = default;
};

// `name` is for messages. Errors: corrupt, limit (traces/limits.h): each with line and byte offset.
std::vector<MooncakeRow> parse_mooncake(std::string_view text, const std::string& name);
// Errors: as parse_mooncake; missing, environment.
std::vector<MooncakeRow> import_mooncake(const std::filesystem::path& path);

}  // namespace redecode
