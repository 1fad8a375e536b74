#include "traces/zstd_frame.h"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <string>

#include "traces/check.h"
#include "traces/error.h"
#include "traces/limits.h"
#include "traces/little_endian.h"

namespace redecode {
namespace {

constexpr size_t kRawBlockBytes = size_t{128} << 10;
constexpr uint8_t kChecksumFlag = 1u << 2;
constexpr uint8_t kSingleSegmentFlag = 1u << 5;
constexpr uint8_t kEightByteSize = 3u << 6;

// RFC 8878: magic, descriptor, content size, raw blocks of at most 128 KiB, low half of XXH64.
std::vector<uint8_t> raw_frame(std::span<const uint8_t> input) {
  std::vector<uint8_t> out(13);
  store_le<uint32_t>(out.data(), ZSTD_MAGICNUMBER);
  out[4] = kChecksumFlag | kSingleSegmentFlag | kEightByteSize;
  store_le<uint64_t>(out.data() + 5, input.size());
  size_t at = 0;
  do {
    const size_t size = std::min(kRawBlockBytes, input.size() - at);
    const bool last = at + size == input.size();
    uint8_t head[4];
    store_le<uint32_t>(head, static_cast<uint32_t>(size << 3) | (last ? 1u : 0u));
    out.insert(out.end(), head, head + 3);
    out.insert(out.end(), input.begin() + static_cast<ptrdiff_t>(at),
               input.begin() + static_cast<ptrdiff_t>(at + size));
    at += size;
  } while (at < input.size());
  uint8_t checksum[4];
  store_le<uint32_t>(checksum, static_cast<uint32_t>(XXH64(input.data(), input.size(), 0)));
  out.insert(out.end(), checksum, checksum + 4);
  return out;
}

}  // namespace

struct FrameCompressor::Impl {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ~Impl() { ZSTD_freeCCtx(context); }
};

FrameCompressor::FrameCompressor(int level) : impl_(std::make_unique<Impl>()) {
  REDECODE_CHECK(impl_->context != nullptr);
  if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel())
    throw Error(ErrorCode::usage, "zstd has no level " + std::to_string(level));
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_contentSizeFlag, 1);
}
FrameCompressor::~FrameCompressor() = default;
FrameCompressor::FrameCompressor(FrameCompressor&&) noexcept = default;

std::vector<uint8_t> FrameCompressor::compress(std::span<const uint8_t> input) {
  std::vector<uint8_t> out(ZSTD_compressBound(input.size()));
  const size_t size =
      ZSTD_compress2(impl_->context, out.data(), out.size(), input.data(), input.size());
  REDECODE_CHECK(!ZSTD_isError(size));
  if (input.size() > size * limits::kCompressionRatio) return raw_frame(input);
  out.resize(size);
  return out;
}

struct FrameDecompressor::Impl {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ~Impl() { ZSTD_freeDCtx(context); }
};

FrameDecompressor::FrameDecompressor() : impl_(std::make_unique<Impl>()) {
  REDECODE_CHECK(impl_->context != nullptr);
}
FrameDecompressor::~FrameDecompressor() = default;
FrameDecompressor::FrameDecompressor(FrameDecompressor&&) noexcept = default;

const char* FrameDecompressor::decompress(std::span<const uint8_t> frame, std::span<uint8_t> out) {
  if (frame.size() < 9 || load_le<uint32_t>(frame.data()) != ZSTD_MAGICNUMBER)
    return "payload is not a zstd frame";
  if ((frame[4] & kChecksumFlag) == 0) return "zstd frame has no checksum";
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != out.size())
    return "zstd frame declares another size than the chunk header";
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size())
    return "zstd frame does not end where the chunk does";
  const size_t size =
      ZSTD_decompressDCtx(impl_->context, out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size)) return ZSTD_getErrorName(size);
  return size == out.size() ? nullptr : "zstd frame holds fewer bytes than declared";
}

}  // namespace redecode
