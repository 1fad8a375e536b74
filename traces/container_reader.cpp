#include <algorithm>
#include <vector>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/crc32c.h"
#include "traces/limits.h"
#include "traces/little_endian.h"
#include "traces/zstd_frame.h"

namespace redecode {
namespace {

constexpr size_t kZeroScanBytes = size_t{64} << 10;

std::string not_ours(std::string_view expected) {
  return "not a redecode " + std::string(expected);
}

Error version_error(uint16_t major, const std::string& context) {
  return Error(ErrorCode::version,
               "format version " + std::to_string(major) + ", this program reads version " +
                   std::to_string(kFormatMajor),
               context);
}

std::string at_byte(const std::string& name, uint64_t offset_bytes) {
  return name + ": byte " + std::to_string(offset_bytes);
}

}  // namespace

std::string_view to_text(FileKind kind) {
  return kind == FileKind::trace ? "trace" : kind == FileKind::run ? "run" : "file of unknown kind";
}

FileKind peek_file_kind(ByteSource& source) {
  std::vector<uint8_t> head(std::min<uint64_t>(source.size_bytes(), limits::kHeaderBytes));
  head.resize(source.read(0, head));
  if (head.empty())
    throw Error(ErrorCode::corrupt, not_ours("trace or run") + ": empty file", source.name());
  ChunkHeader header;
  const HeaderResult result = parse(head, header);
  switch (result.state) {
    case HeaderState::good:
      break;
    case HeaderState::short_input:
      throw Error(ErrorCode::truncated, "file ends inside its header chunk", source.name());
    case HeaderState::foreign:
      throw Error(ErrorCode::corrupt, not_ours("trace or run"), source.name());
    case HeaderState::version:
      throw version_error(result.major, source.name());
    case HeaderState::damaged:
      throw Error(ErrorCode::corrupt, result.reason, at_byte(source.name(), 0));
  }
  if (header.file_kind != FileKind::trace && header.file_kind != FileKind::run)
    throw Error(ErrorCode::corrupt, "file of an unknown kind", source.name());
  return header.file_kind;
}

struct ContainerReader::Impl {
  std::unique_ptr<ByteSource> source;
  FileKind expected = FileKind::trace;
  FrameDecompressor decompressor;
  std::vector<uint8_t> stored;  // header and frame of the current chunk
  std::vector<uint64_t> payload;
  ChunkHeader header;
  size_t next_word = 0;
  uint32_t records_of_chunk = 0;  // returned so far
  uint64_t offset_bytes = 0;      // of the next chunk
  uint64_t chunk_offset_bytes = 0;
  uint64_t chunks = 0, records = 0, payload_bytes = 0;
  Digest previous = 0;
  FileUuid uuid{};
  bool ended = false;
  FileEnd end = FileEnd::cut;

  [[noreturn]] void fail(ErrorCode code, std::string message) const {
    throw Error(code, std::move(message), here());
  }
  std::string here() const {
    return source->name() + ": chunk " + std::to_string(chunks) + " at byte " +
           std::to_string(offset_bytes);
  }

  // Bytes end inside a chunk.
  bool cut() {
    if (chunks == 0) fail(ErrorCode::truncated, "file ends inside its header chunk");
    return false;
  }

  bool rest_is_zero() const {
    std::vector<uint8_t> bytes(kZeroScanBytes);
    for (uint64_t at = offset_bytes;;) {
      const size_t count = source->read(at, bytes);
      if (count == 0) return true;
      for (size_t i = 0; i < count; ++i)
        if (bytes[i] != 0) return false;
      at += count;
    }
  }

  // False where the file is cut.
  bool read_header() {
    const uint64_t left = source->size_bytes() - offset_bytes;
    stored.resize(std::min<uint64_t>(left, limits::kHeaderBytes));
    stored.resize(source->read(offset_bytes, stored));
    if (stored.empty() && chunks == 0)
      fail(ErrorCode::corrupt, not_ours(to_text(expected)) + ": empty file");
    const HeaderResult result = parse(stored, header);
    switch (result.state) {
      case HeaderState::good:
        return true;
      case HeaderState::short_input:
        return cut();
      case HeaderState::foreign:
        if (chunks == 0) fail(ErrorCode::corrupt, not_ours(to_text(expected)));
        if (rest_is_zero()) return cut();
        fail(ErrorCode::corrupt, "no chunk begins here");
      case HeaderState::version:
        throw version_error(result.major, here());
      case HeaderState::damaged:
        fail(ErrorCode::corrupt, result.reason);
    }
    return false;
  }

  void check_header() const {
    if (header.file_kind != expected) {
      if (chunks != 0) fail(ErrorCode::corrupt, "chunk of another kind of file");
      fail(ErrorCode::usage, "this is a " + std::string(to_text(header.file_kind)) + ", not a " +
                                 std::string(to_text(expected)));
    }
    if (header.number != chunks)
      fail(ErrorCode::corrupt, "chunk calls itself number " + std::to_string(header.number));
    if (header.previous != previous || (chunks != 0 && header.uuid != uuid))
      fail(ErrorCode::corrupt, "chunk does not follow the one before it");
    if ((chunks == 0) != (header.kind == static_cast<uint8_t>(ChunkKind::header)))
      fail(ErrorCode::corrupt, "header chunk out of place");
    check_sizes();
  }

  void check_sizes() const {
    const auto within = [&](uint64_t value, uint64_t cap, const char* what) {
      if (value > cap)
        fail(ErrorCode::limit, std::string(what) + " " + std::to_string(value) + ", at most " +
                                   std::to_string(cap) + " allowed");
    };
    within(header.payload_bytes, limits::kChunkBytes, "payload size");
    within(header.stored_bytes, limits::kStoredBytes, "stored size");
    within(header.record_count, limits::kRecordsPerChunk, "record count");
    within(header.payload_bytes, header.stored_bytes * limits::kCompressionRatio,
           "payload size against stored size");
    if (header.record_count > header.payload_bytes / 16)
      fail(ErrorCode::corrupt, "more records than bytes for them");
  }

  // False where the file is cut. The chunk's bytes are in `stored` then.
  bool read_stored() {
    const uint64_t chunk_bytes = header.header_bytes + header.stored_bytes;
    if (source->size_bytes() - offset_bytes < chunk_bytes) return cut();
    stored.resize(chunk_bytes);
    if (source->read(offset_bytes, stored) != chunk_bytes) return cut();
    const std::span<const uint8_t> frame = frame_bytes();
    if ((header.flags & kChunkHasCrc) != 0 &&
        crc32c(frame.data(), frame.size()) != header.stored_crc)
      fail(ErrorCode::corrupt, "payload checksum does not match");
    return true;
  }

  std::span<const uint8_t> frame_bytes() const {
    return std::span<const uint8_t>(stored).subspan(header.header_bytes);
  }

  bool is_known_kind() const {
    return header.kind >= static_cast<uint8_t>(ChunkKind::header) &&
           header.kind <= static_cast<uint8_t>(ChunkKind::end);
  }

  void unpack() {
    payload.resize(header.payload_bytes / 8);
    const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(payload.data()), header.payload_bytes);
    if (const char* reason = decompressor.decompress(frame_bytes(), out))
      fail(ErrorCode::corrupt, reason);
    payload_bytes += header.payload_bytes;
  }

  // Makes the next known chunk current; false at the end of the readable part.
  bool load_chunk() {
    for (;;) {
      if (ended) return false;
      if (chunks != 0 && is_end_chunk()) return finish();
      ended = true;  // unless all goes well: nothing is read after a failure
      if (!read_header()) return false;
      check_header();
      if (!read_stored()) return false;
      const bool known = is_known_kind();
      if (!known && (header.flags & kChunkSkippable) == 0)
        fail(ErrorCode::version, "chunk kind " + std::to_string(header.kind) +
                                     " of format version " + std::to_string(kFormatMajor) + '.' +
                                     std::to_string(header.minor) + ", this program knows " +
                                     std::to_string(kFormatMajor) + '.' +
                                     std::to_string(kFormatMinor));
      if (known) unpack();
      previous = digest_bytes(stored.data(), stored.size());
      uuid = header.uuid;
      chunk_offset_bytes = offset_bytes;
      offset_bytes += stored.size();
      ++chunks;
      next_word = 0;
      records_of_chunk = 0;
      ended = false;
      if (known) return true;
    }
  }

  bool is_end_chunk() const { return header.kind == static_cast<uint8_t>(ChunkKind::end); }

  bool finish() {
    ended = true;
    if (offset_bytes != source->size_bytes()) fail(ErrorCode::corrupt, "bytes after the end");
    end = FileEnd::clean;
    return false;
  }

  std::string chunk_context() const {
    return source->name() + ": chunk " + std::to_string(chunks - 1) + " at byte " +
           std::to_string(chunk_offset_bytes);
  }

  MessageWords take_record() {
    const auto bad = [&](const char* reason) {
      throw Error(ErrorCode::corrupt, reason, chunk_context());
    };
    const size_t left = payload.size() - next_word;
    if (left < 2) bad("record runs over the end of its chunk");
    const uint8_t* table = reinterpret_cast<const uint8_t*>(payload.data() + next_word);
    if (load_le<uint32_t>(table) != 0) bad("record has more than one segment");
    const size_t words = size_t{load_le<uint32_t>(table + 4)} + 1;
    if (words < 2 || words > left) bad("record runs over the end of its chunk");
    const MessageWords message(payload.data() + next_word, words);
    next_word += words;
    ++records_of_chunk;
    ++records;
    if (records_of_chunk == header.record_count && next_word != payload.size())
      bad("chunk holds more records than it declares");
    return message;
  }
};

ContainerReader::ContainerReader(std::unique_ptr<ByteSource> source, FileKind expected)
    : impl_(std::make_unique<Impl>()) {
  impl_->source = std::move(source);
  impl_->expected = expected;
  impl_->load_chunk();
  if (impl_->header.record_count != 1)
    throw Error(ErrorCode::corrupt, "header chunk must hold one record", impl_->chunk_context());
}
ContainerReader::~ContainerReader() = default;
ContainerReader::ContainerReader(ContainerReader&&) noexcept = default;

bool ContainerReader::next(RecordView& out) {
  Impl& r = *impl_;
  if (r.ended) return false;
  while (r.records_of_chunk == r.header.record_count) {
    if (r.header.record_count == 0 && !r.payload.empty() && r.is_known_kind() && !r.ended)
      throw Error(ErrorCode::corrupt, "chunk holds more records than it declares",
                  r.chunk_context());
    if (!r.load_chunk()) return false;
  }
  out.starts_chunk = r.records_of_chunk == 0;
  out.in_end_chunk = r.is_end_chunk();
  out.message = r.take_record();
  return true;
}

FileEnd ContainerReader::end() const { return impl_->end; }
uint64_t ContainerReader::cut_offset_bytes() const { return impl_->offset_bytes; }
uint64_t ContainerReader::file_bytes() const { return impl_->source->size_bytes(); }
uint64_t ContainerReader::chunks() const { return impl_->chunks; }
uint64_t ContainerReader::records() const { return impl_->records; }
uint64_t ContainerReader::payload_bytes() const { return impl_->payload_bytes; }
const FileUuid& ContainerReader::uuid() const { return impl_->uuid; }
std::string ContainerReader::context() const { return impl_->chunk_context(); }

}  // namespace redecode
