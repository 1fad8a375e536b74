// traces/byte_source.h - bytes at offsets: a file on disk, or memory that stands for one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace redecode {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size_bytes() const = 0;
  // Copies from offset; returns the bytes copied: fewer than out.size() only at the end.
  // Errors: environment (the disk fails).
  virtual size_t read(uint64_t offset_bytes, std::span<uint8_t> out) = 0;
  // For messages: the path, or the name given.
  virtual const std::string& name() const = 0;
};

// Errors: missing, environment (no permission), corrupt (a folder or a device).
std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path);
std::unique_ptr<ByteSource> in_memory(std::vector<uint8_t> bytes, std::string name);

// The whole of a text file, for importers. Errors: as open_file; limit (above cap_bytes).
std::string read_text_file(const std::filesystem::path& path, uint64_t cap_bytes);

}  // namespace redecode
