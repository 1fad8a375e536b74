#include <algorithm>
#include <optional>

#include "traces/container.h"
#include "traces/crc32c.h"
#include "traces/limits.h"
#include "traces/zstd_frame.h"

namespace redecode {
namespace {

// How far from the end of a file its end chunk is looked for, and the index before it.
constexpr uint64_t kEndSearchBytes = uint64_t{64} << 10;
constexpr uint64_t kIndexSearchBytes = limits::kStoredBytes + 2 * uint64_t{limits::kHeaderBytes};
constexpr size_t kWindowBytes = size_t{64} << 10;

std::optional<ChunkHeader> header_at(ByteSource& source, uint64_t offset_bytes) {
  std::vector<uint8_t> bytes(limits::kHeaderBytes);
  bytes.resize(source.read(offset_bytes, bytes));
  ChunkHeader header;
  if (parse(bytes, header).state != HeaderState::good) return std::nullopt;
  if (header.stored_bytes > limits::kStoredBytes ||
      header.header_bytes + header.stored_bytes > source.size_bytes() - offset_bytes)
    return std::nullopt;
  return header;
}

ChunkEntry entry_of(const ChunkHeader& header, uint64_t offset_bytes) {
  return {.offset_bytes = offset_bytes,
          .size_bytes = header.header_bytes + header.stored_bytes,
          .number = header.number,
          .kind = header.kind,
          .record_count = header.record_count,
          .steps = {header.first_step, header.step_count},
          .stored_crc = header.stored_crc};
}

// The chunk of `kind` that ends at `end_bytes`, searched backwards over `reach_bytes`.
std::optional<ChunkEntry> chunk_before(ByteSource& source, uint64_t end_bytes, ChunkKind kind,
                                       uint64_t reach_bytes) {
  const uint64_t least = end_bytes - std::min(end_bytes, reach_bytes);
  std::vector<uint8_t> window;
  for (uint64_t high = end_bytes / 8 * 8; high > least;) {
    const uint64_t low = std::max(least / 8 * 8, high - std::min<uint64_t>(high, kWindowBytes));
    window.resize(high - low + kMagicEnd);
    window.resize(source.read(low, window));
    for (uint64_t at = high; at > low;) {
      at -= 8;
      if (at - low >= window.size() ||
          !has_chunk_magic(std::span<const uint8_t>(window).subspan(at - low)))
        continue;
      const auto header = header_at(source, at);
      if (!header || at + header->header_bytes + header->stored_bytes != end_bytes) continue;
      if (header->kind != static_cast<uint8_t>(kind)) return std::nullopt;
      return entry_of(*header, at);
    }
    high = low;
  }
  return std::nullopt;
}

std::vector<uint64_t> record_of(ByteSource& source, const ChunkEntry& entry) {
  const std::string where = source.name() + ": byte " + std::to_string(entry.offset_bytes);
  const auto header = header_at(source, entry.offset_bytes);
  if (!header) throw Error(ErrorCode::corrupt, "no chunk begins here", where);
  if (header->payload_bytes > limits::kChunkBytes ||
      header->payload_bytes > header->stored_bytes * limits::kCompressionRatio)
    throw Error(ErrorCode::limit, "payload is too large", where);
  std::vector<uint8_t> frame(header->stored_bytes);
  const size_t count = source.read(entry.offset_bytes + header->header_bytes, frame);
  if (count != frame.size() || crc32c(frame.data(), frame.size()) != header->stored_crc)
    throw Error(ErrorCode::corrupt, "payload checksum does not match", where);
  std::vector<uint64_t> words(header->payload_bytes / 8);
  FrameDecompressor decompressor;
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(words.data()), header->payload_bytes);
  if (const char* reason = decompressor.decompress(frame, out))
    throw Error(ErrorCode::corrupt, reason, where);
  return words;
}

}  // namespace

std::optional<uint64_t> next_chunk_magic(ByteSource& source, uint64_t offset_bytes) {
  std::vector<uint8_t> window(kWindowBytes);
  for (uint64_t at = (offset_bytes + 7) / 8 * 8; at < source.size_bytes();) {
    const size_t count = source.read(at, window);
    if (count < kChunkHeaderBytes) return std::nullopt;
    const size_t usable = count - kMagicEnd;
    for (size_t i = 0; i <= usable; i += 8)
      if (has_chunk_magic({window.data() + i, count - i})) return at + i;
    at += usable / 8 * 8 + 8;
  }
  return std::nullopt;
}

std::vector<ChunkEntry> scan_chunks(ByteSource& source) {
  std::vector<ChunkEntry> out;
  const auto first = header_at(source, 0);
  if (!first) return out;
  for (uint64_t at = 0; at < source.size_bytes();) {
    const auto header = header_at(source, at);
    const bool ours = header && header->uuid == first->uuid &&
                      (out.empty() || header->number > out.back().number);
    if (ours) {
      out.push_back(entry_of(*header, at));
      at += out.back().size_bytes;
      continue;
    }
    const auto next = next_chunk_magic(source, at + 8);
    if (!next) break;
    at = *next;
  }
  return out;
}

std::vector<uint64_t> read_schema_record(ByteSource& source) {
  const auto first = header_at(source, 0);
  if (!first) return {};
  const uint64_t at = first->header_bytes + first->stored_bytes;
  const auto second = header_at(source, at);
  if (!second || second->kind != static_cast<uint8_t>(ChunkKind::schema)) return {};
  return record_of(source, entry_of(*second, at));
}

std::vector<uint64_t> read_index_record(ByteSource& source) {
  const auto end = chunk_before(source, source.size_bytes(), ChunkKind::end, kEndSearchBytes);
  if (!end) return {};
  const auto index = chunk_before(source, end->offset_bytes, ChunkKind::index, kIndexSearchBytes);
  return index ? record_of(source, *index) : std::vector<uint64_t>();
}

}  // namespace redecode
