// traces/chunk_header.h - ChunkHeader: what stands in front of every chunk of a file.
//
// Bytes: docs/trace-format.md, section 3.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/digest.h"

namespace redecode {

enum class FileKind : uint8_t { trace = 1, run = 2 };
// Schema and index chunks may be skipped.
enum class ChunkKind : uint8_t { header = 1, data = 2, end = 3, schema = 4, index = 5 };

inline constexpr uint16_t kFormatMajor = 1;
inline constexpr uint16_t kFormatMinor = 1;
inline constexpr size_t kChunkHeaderBytes = 136;  // without padding
inline constexpr uint32_t kChunkSkippable = 1u
                                            << 0;  // a reader that does not know the kind skips it
inline constexpr uint32_t kChunkHasCrc = 1u << 1;  // stored_crc is set
inline constexpr uint32_t kCodecZstd = 1;

using FileUuid = std::array<uint8_t, 16>;

struct ChunkHeader {
  uint16_t minor = kFormatMinor;
  uint16_t header_bytes = kChunkHeaderBytes;  // from the start of the chunk to the stored bytes
  FileKind file_kind = FileKind::trace;
  uint8_t kind = 0;  // a ChunkKind, or a kind of a later version
  uint32_t flags = kChunkHasCrc;
  uint32_t record_count = 0;
  uint64_t number = 0;  // 0 for the header chunk, then 1, 2, 3 ...
  FileUuid uuid{};
  uint64_t first_step = 0;  // of the chunk's steps (runs: outputs); 0 where it has none
  uint32_t step_count = 0;
  uint64_t payload_bytes = 0;  // uncompressed
  uint64_t stored_bytes = 0;   // the zstd frame
  uint32_t stored_crc = 0;     // CRC-32C of the zstd frame
  uint32_t codec = kCodecZstd;
  Digest previous = 0;  // of all bytes of the chunk before; 0 in the first
};

// The header with its padding, ready to be written: header_bytes is set so that the chunk's size is
// a multiple of 8.
std::vector<uint8_t> serialize(ChunkHeader& header);

enum class HeaderState : uint8_t {
  good,
  short_input,  // fewer bytes than the header says it has
  foreign,      // not the magic of a redecode file
  version,      // another major version: `out` has nothing but file_kind, `major` says which
  damaged,      // magic is there, but the checksum or a size is wrong
};

struct HeaderResult {
  HeaderState state = HeaderState::foreign;
  uint16_t major = 0;
  std::string reason;  // for damaged
};

// Reads the header at the start of `bytes` (pass at least limits::kHeaderBytes where there are as
// many).
// Whether the first bytes are those of a chunk: what a search for the next chunk looks for. False
// for fewer than kMagicEnd bytes.
inline constexpr size_t kMagicEnd = 16;
bool has_chunk_magic(std::span<const uint8_t> bytes);

HeaderResult parse(std::span<const uint8_t> bytes, ChunkHeader& out);

}  // namespace redecode
