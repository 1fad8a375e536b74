#include "traces/chunk_header.h"

#include <algorithm>

#include "traces/check.h"
#include "traces/crc32c.h"
#include "traces/limits.h"
#include "traces/little_endian.h"

namespace redecode {
namespace {

constexpr uint32_t kSkippableMagic = 0x184D2A5Du;  // zstd allows 0x184D2A50 to 0x184D2A5F
constexpr std::array<uint8_t, 8> kMagic = {0x89, 'R', 'D', 'C', '\r', '\n', 0x1A, '\n'};
constexpr size_t kCrcAt = 132;
// Skippable frame head, magic, version, sizes and kinds: the part that no version may move.
constexpr size_t kFixedPrefixBytes = 24;

uint32_t header_crc(std::span<const uint8_t> header) {
  static constexpr uint8_t kZeros[4] = {};
  uint32_t crc = crc32c(header.data(), kCrcAt);
  crc = crc32c(kZeros, sizeof kZeros, crc);
  return crc32c(header.data() + kCrcAt + 4, header.size() - kCrcAt - 4, crc);
}

std::string implausible(const ChunkHeader& h) {
  if (h.number != 0 && h.kind == static_cast<uint8_t>(ChunkKind::header)) return "a second header";
  if (h.codec != kCodecZstd) return "unknown codec " + std::to_string(h.codec);
  if (h.payload_bytes % 8 != 0) return "payload size is not a multiple of 8";
  return {};
}

}  // namespace

std::vector<uint8_t> serialize(ChunkHeader& header) {
  const size_t padding = (8 - (kChunkHeaderBytes + header.stored_bytes) % 8) % 8;
  header.header_bytes = static_cast<uint16_t>(kChunkHeaderBytes + padding);
  std::vector<uint8_t> out(header.header_bytes, 0);
  uint8_t* p = out.data();
  store_le<uint32_t>(p, kSkippableMagic);
  store_le<uint32_t>(p + 4, header.header_bytes - 8u);
  std::copy(kMagic.begin(), kMagic.end(), p + 8);
  store_le<uint16_t>(p + 16, kFormatMajor);
  store_le<uint16_t>(p + 18, header.minor);
  store_le<uint16_t>(p + 20, header.header_bytes);
  p[22] = static_cast<uint8_t>(header.file_kind);
  p[23] = header.kind;
  store_le<uint32_t>(p + 24, header.flags);
  store_le<uint32_t>(p + 28, header.record_count);
  store_le<uint64_t>(p + 32, header.number);
  std::copy(header.uuid.begin(), header.uuid.end(), p + 40);
  store_le<uint64_t>(p + 56, header.first_step);
  store_le<uint32_t>(p + 64, header.step_count);
  store_le<uint64_t>(p + 72, header.payload_bytes);
  store_le<uint64_t>(p + 80, header.stored_bytes);
  store_le<uint32_t>(p + 88, header.stored_crc);
  store_le<uint32_t>(p + 92, header.codec);
  store_le<uint64_t>(p + 96, header.previous);
  store_le<uint32_t>(p + kCrcAt, header_crc(out));
  return out;
}

bool has_chunk_magic(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagicEnd && load_le<uint32_t>(bytes.data()) == kSkippableMagic &&
         std::equal(kMagic.begin(), kMagic.end(), bytes.begin() + 8);
}

HeaderResult parse(std::span<const uint8_t> bytes, ChunkHeader& out) {
  const uint8_t* p = bytes.data();
  std::array<uint8_t, 4> frame_magic{};
  store_le<uint32_t>(frame_magic.data(), kSkippableMagic);
  const auto agrees = [&](std::span<const uint8_t> expected, size_t at) {
    const size_t have = bytes.size() > at ? std::min(expected.size(), bytes.size() - at) : 0;
    return std::equal(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(have),
                      bytes.begin() + static_cast<ptrdiff_t>(std::min(at, bytes.size())));
  };
  if (!agrees(frame_magic, 0) || !agrees(kMagic, 8)) return {HeaderState::foreign, 0, {}};
  if (bytes.size() < kFixedPrefixBytes) return {HeaderState::short_input, 0, {}};

  HeaderResult result{HeaderState::good, load_le<uint16_t>(p + 16), {}};
  out.file_kind = static_cast<FileKind>(p[22]);
  if (result.major != kFormatMajor) {
    result.state = HeaderState::version;
    return result;
  }
  const auto damaged = [&](std::string reason) {
    return HeaderResult{HeaderState::damaged, result.major, std::move(reason)};
  };
  const size_t header_bytes = load_le<uint16_t>(p + 20);
  if (header_bytes < kChunkHeaderBytes || header_bytes > limits::kHeaderBytes)
    return damaged("header size " + std::to_string(header_bytes) + " is out of range");
  if (bytes.size() < header_bytes) return {HeaderState::short_input, result.major, {}};
  if (load_le<uint32_t>(p + kCrcAt) != header_crc(bytes.first(header_bytes)))
    return damaged("header checksum does not match");
  if (load_le<uint32_t>(p + 4) != header_bytes - 8)
    return damaged("frame size and header size do not agree");

  out.minor = load_le<uint16_t>(p + 18);
  out.header_bytes = static_cast<uint16_t>(header_bytes);
  out.kind = p[23];
  out.flags = load_le<uint32_t>(p + 24);
  out.record_count = load_le<uint32_t>(p + 28);
  out.number = load_le<uint64_t>(p + 32);
  std::copy(p + 40, p + 56, out.uuid.begin());
  out.first_step = load_le<uint64_t>(p + 56);
  out.step_count = load_le<uint32_t>(p + 64);
  out.payload_bytes = load_le<uint64_t>(p + 72);
  out.stored_bytes = load_le<uint64_t>(p + 80);
  out.stored_crc = load_le<uint32_t>(p + 88);
  out.codec = load_le<uint32_t>(p + 92);
  out.previous = load_le<uint64_t>(p + 96);
  if (std::string reason = implausible(out); !reason.empty()) return damaged(std::move(reason));
  return result;
}

}  // namespace redecode
