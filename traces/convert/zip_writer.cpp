#include "traces/convert/zip_writer.h"

#include "traces/check.h"
#include "traces/convert/crc32.h"
#include "traces/little_endian.h"

namespace redecode {
namespace {

constexpr uint16_t kVersion = 45;        // 64-bit fields
constexpr uint16_t kDate = 0x21;         // 1980-01-01
constexpr uint32_t kSee64 = 0xFFFFFFFF;  // the value is in a 64-bit field

class Fields {
 public:
  template <class T>
  Fields& add(T value) {
    uint8_t bytes[sizeof(T)];
    store_le(bytes, value);
    text_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
    return *this;
  }
  Fields& u16(uint16_t value) { return add(value); }
  Fields& u32(uint32_t value) { return add(value); }
  Fields& u64(uint64_t value) { return add(value); }
  Fields& text(std::string_view value) {
    text_ += value;
    return *this;
  }
  const std::string& take() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

void ZipWriter::put(const std::string& bytes) {
  out_.write(bytes);
  offset_bytes_ += bytes.size();
}

void ZipWriter::check_member() const {
  if (members_.empty()) return;
  REDECODE_CHECK_OP(member_bytes_, ==, members_.back().size_bytes);
  REDECODE_CHECK_OP(member_crc_, ==, members_.back().crc);
}

void ZipWriter::begin(std::string_view name, uint64_t size_bytes, uint32_t crc) {
  check_member();
  members_.push_back({std::string(name), size_bytes, offset_bytes_, crc});
  member_bytes_ = 0;
  member_crc_ = 0;
  Fields f;
  f.u32(0x04034b50).u16(kVersion).u16(0).u16(0).u16(0).u16(kDate).u32(crc);
  f.u32(kSee64).u32(kSee64).u16(static_cast<uint16_t>(name.size())).u16(20).text(name);
  f.u16(1).u16(16).u64(size_bytes).u64(size_bytes);
  put(f.take());
}

void ZipWriter::write(std::string_view bytes) {
  member_crc_ = crc32(bytes.data(), bytes.size(), member_crc_);
  member_bytes_ += bytes.size();
  offset_bytes_ += bytes.size();
  out_.write(bytes);
}

void ZipWriter::close() {
  check_member();
  const uint64_t directory_bytes = offset_bytes_;
  for (const Member& m : members_) {
    Fields f;
    f.u32(0x02014b50).u16(kVersion).u16(kVersion).u16(0).u16(0).u16(0).u16(kDate).u32(m.crc);
    f.u32(kSee64).u32(kSee64).u16(static_cast<uint16_t>(m.name.size())).u16(28).u16(0).u16(0);
    f.u16(0).u32(0).u32(kSee64).text(m.name);
    f.u16(1).u16(24).u64(m.size_bytes).u64(m.size_bytes).u64(m.offset_bytes);
    put(f.take());
  }
  const uint64_t end_bytes = offset_bytes_;
  const uint64_t count = members_.size();
  Fields f;
  f.u32(0x06064b50).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0).u64(count).u64(count);
  f.u64(end_bytes - directory_bytes).u64(directory_bytes);
  f.u32(0x07064b50).u32(0).u64(end_bytes).u32(1);
  f.u32(0x06054b50).u16(0xFFFF).u16(0xFFFF).u16(0xFFFF).u16(0xFFFF).u32(kSee64).u32(kSee64).u16(0);
  put(f.take());
}

}  // namespace redecode
