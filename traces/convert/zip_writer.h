// traces/convert/zip_writer.h - ZipWriter: a zip archive of stored members, written front to back.
//
// Size and CRC-32 of a member must be known before its bytes. Every member carries the 64-bit
// fields (zip 4.5), so that none has a limit; times are 1980-01-01, so that equal members make
// equal bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/convert/byte_sink.h"

namespace redecode {

class ZipWriter {
 public:
  explicit ZipWriter(ByteSink& out) : out_(out) {}
  // Then write() exactly `size_bytes`, whose CRC is `crc`: anything else is a bug of ours.
  void begin(std::string_view name, uint64_t size_bytes, uint32_t crc);
  void write(std::string_view bytes);
  void close();

 private:
  struct Member {
    std::string name;
    uint64_t size_bytes = 0, offset_bytes = 0;
    uint32_t crc = 0;
  };
  void put(const std::string& bytes);
  void check_member() const;

  ByteSink& out_;
  std::vector<Member> members_;
  uint64_t offset_bytes_ = 0, member_bytes_ = 0;
  uint32_t member_crc_ = 0;
};

}  // namespace redecode
