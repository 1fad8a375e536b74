// traces/zstd_frame.h - one zstd frame with a content checksum, made and opened under a ratio cap.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace redecode {

// Makes frames. Single-threaded, fixed level: the same input gives the same bytes with one zstd
// version.
class FrameCompressor {
 public:
  explicit FrameCompressor(int level);  // Errors: usage (no such level)
  ~FrameCompressor();
  FrameCompressor(FrameCompressor&&) noexcept;
  // Input above limits::kCompressionRatio times its compressed size is stored in raw blocks
  // instead, so that every frame is within the cap that readers enforce.
  std::vector<uint8_t> compress(std::span<const uint8_t> input);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class FrameDecompressor {
 public:
  FrameDecompressor();
  ~FrameDecompressor();
  FrameDecompressor(FrameDecompressor&&) noexcept;
  // Fills `out` exactly. Returns why not, or nullptr: the frame must be one whole ordinary frame
  // with a content checksum and the content size out.size().
  const char* decompress(std::span<const uint8_t> frame, std::span<uint8_t> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redecode
