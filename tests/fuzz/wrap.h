// tests/fuzz/wrap.h - chunks with right checksums around fuzzed records, so that a fuzzer gets past
// them.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "traces/chunk_header.h"
#include "traces/crc32c.h"
#include "traces/values_codec.h"
#include "traces/zstd_frame.h"

namespace redecode::fuzz {

using Bytes = std::vector<uint8_t>;

inline void append_chunk(Bytes& file, FrameCompressor& compressor, ChunkHeader& header,
                         const codec::Message& message) {
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(message.data()),
                                         message.size() * 8);
  const Bytes frame = compressor.compress(payload);
  header.payload_bytes = payload.size();
  header.stored_bytes = frame.size();
  header.stored_crc = crc32c(frame.data(), frame.size());
  header.record_count = 1;
  Bytes chunk = serialize(header);
  chunk.insert(chunk.end(), frame.begin(), frame.end());
  header.previous = digest_bytes(chunk.data(), chunk.size());
  ++header.number;
  file.insert(file.end(), chunk.begin(), chunk.end());
}

// The bytes as the one segment of a message.
inline codec::Message as_message(std::span<const uint8_t> bytes) {
  codec::Message message(bytes.size() / 8 + 1);
  message[0] = uint64_t{bytes.size() / 8} << 32;
  std::memcpy(message.data() + 1, bytes.data(), bytes.size() / 8 * 8);
  return message;
}

// A file whose first chunk holds `header` and whose second holds the record, or whose only chunk
// holds the record where `header` is empty.
inline Bytes file_around(FileKind kind, const codec::Message& header,
                         const codec::Message& record) {
  Bytes file;
  FrameCompressor compressor(1);
  ChunkHeader chunk;
  chunk.file_kind = kind;
  chunk.kind = static_cast<uint8_t>(ChunkKind::header);
  if (!header.empty()) {
    append_chunk(file, compressor, chunk, header);
    chunk.kind = static_cast<uint8_t>(ChunkKind::data);
  }
  append_chunk(file, compressor, chunk, record);
  return file;
}

}  // namespace redecode::fuzz
