// tests/traces/chunk_bytes.h - chunks as bytes: taking files apart, and putting together ones that
// no writer would write, with right checksums around whatever they say.
#pragma once
#include <zstd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "traces/chunk_header.h"
#include "traces/crc32c.h"

namespace redecode::test {

using Bytes = std::vector<uint8_t>;
using Words = std::vector<uint64_t>;

inline Bytes frame_of(const Words& words, bool checksum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  Bytes out(ZSTD_compressBound(words.size() * 8));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), words.data(), words.size() * 8));
  ZSTD_freeCCtx(context);
  return out;
}

inline Bytes chunk_of(ChunkHeader header, const Bytes& frame) {
  header.stored_bytes = frame.size();
  header.stored_crc = crc32c(frame.data(), frame.size());
  Bytes out = serialize(header);
  out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

struct ChunkBytes {
  uint64_t begin = 0, end = 0;  // in the file
  ChunkHeader header;
};

// Of a sound file.
inline std::vector<ChunkBytes> split(const Bytes& file) {
  std::vector<ChunkBytes> out;
  for (uint64_t at = 0; at < file.size();) {
    ChunkBytes chunk;
    if (parse(std::span<const uint8_t>(file).subspan(at), chunk.header).state != HeaderState::good)
      break;
    chunk.begin = at;
    chunk.end = at += chunk.header.header_bytes + chunk.header.stored_bytes;
    out.push_back(chunk);
  }
  return out;
}

inline Words payload_of(const Bytes& file, const ChunkBytes& chunk) {
  Words words(chunk.header.payload_bytes / 8);
  ZSTD_decompress(words.data(), words.size() * 8,
                  file.data() + chunk.begin + chunk.header.header_bytes, chunk.header.stored_bytes);
  return words;
}

// `file` with the payload of chunk `index` replaced; all that follows is chained again.
inline Bytes with_payload(const Bytes& file, size_t index, const Words& words) {
  const std::vector<ChunkBytes> chunks = split(file);
  Bytes out(file.begin(), file.begin() + static_cast<ptrdiff_t>(chunks[index].begin));
  Digest previous = chunks[index].header.previous;
  for (size_t i = index; i < chunks.size(); ++i) {
    ChunkHeader header = chunks[i].header;
    header.previous = previous;
    Bytes frame(file.begin() + static_cast<ptrdiff_t>(chunks[i].begin + header.header_bytes),
                file.begin() + static_cast<ptrdiff_t>(chunks[i].end));
    if (i == index) {
      header.payload_bytes = words.size() * 8;
      frame = frame_of(words);
    }
    const Bytes chunk = chunk_of(header, frame);
    previous = digest_bytes(chunk.data(), chunk.size());
    out.insert(out.end(), chunk.begin(), chunk.end());
  }
  return out;
}

}  // namespace redecode::test
