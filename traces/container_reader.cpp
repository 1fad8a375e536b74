#include <algorithm>
#include <optional>
#include <utility>
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
constexpr size_t kForeignKept = 64;
constexpr const char* kCutReason = "the file ends inside this chunk";

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
  ReadOptions options;
  FrameDecompressor decompressor;
  std::vector<uint8_t> stored;  // header and frame of the current chunk
  std::vector<uint64_t> payload;
  ChunkHeader header;
  size_t next_word = 0;
  uint32_t records_of_chunk = 0;  // returned so far
  uint64_t offset_bytes = 0;      // of the next chunk
  uint64_t chunk_offset_bytes = 0;
  uint64_t next_number = 0;
  uint64_t chunks = 0, records = 0, payload_bytes = 0;
  Digest previous = 0, last_chunk = 0;
  FileUuid uuid{};
  bool knows_previous = true;  // false right after a seek or damage
  bool skipped = false;
  std::vector<Digest> foreign;  // the last sound chunks that belong to another recording
  std::optional<Damage> damage;
  bool ended = false;
  FileEnd end = FileEnd::cut;

  [[noreturn]] void fail(ErrorCode code, std::string message) const {
    throw Error(code, std::move(message), here());
  }
  std::string here() const {
    return source->name() + ": chunk " + std::to_string(next_number) + " at byte " +
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
    if (chunks != 0 && header.uuid != uuid)
      fail(ErrorCode::corrupt, "chunk does not follow the one before it");
    if (knows_previous ? header.number != next_number : header.number < next_number)
      fail(ErrorCode::corrupt, "chunk calls itself number " + std::to_string(header.number));
    if (knows_previous && header.previous != previous)
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

  // Whether a chunk lies where the entry says, and is what it says.
  bool agrees(const ChunkEntry& e) {
    if (e.offset_bytes >= source->size_bytes()) return false;
    std::vector<uint8_t> bytes(limits::kHeaderBytes);
    bytes.resize(source->read(e.offset_bytes, bytes));
    ChunkHeader seen;
    return parse(bytes, seen).state == HeaderState::good && seen.uuid == uuid &&
           seen.number == e.number && seen.kind == e.kind && seen.first_step == e.steps.first &&
           seen.step_count == e.steps.count &&
           seen.header_bytes + seen.stored_bytes == e.size_bytes;
  }

  // Whether no chunk of this file lies between the two, but for damaged and repeated ones.
  bool follows(const ChunkEntry& before, const ChunkEntry& after) const {
    const uint64_t behind_bytes = before.offset_bytes + before.size_bytes;
    if (behind_bytes > after.offset_bytes) return false;
    std::vector<uint8_t> bytes;
    for (uint64_t at = behind_bytes; at != after.offset_bytes;) {
      bytes.resize(limits::kHeaderBytes);
      bytes.resize(source->read(at, bytes));
      ChunkHeader seen;
      if (parse(bytes, seen).state == HeaderState::good && seen.uuid == uuid &&
          seen.number > before.number)
        return false;
      const auto next = next_chunk_magic(*source, at + 8);
      if (!next || *next > after.offset_bytes) return false;
      at = *next;
    }
    return true;
  }

  bool is(ChunkKind kind) const { return header.kind == static_cast<uint8_t>(kind); }
  bool is_known_kind() const {
    return header.kind >= static_cast<uint8_t>(ChunkKind::header) &&
           header.kind <= static_cast<uint8_t>(ChunkKind::index);
  }
  bool has_records() const {
    return is_known_kind() && !is(ChunkKind::schema) && !is(ChunkKind::index);
  }

  void unpack() {
    payload.resize(header.payload_bytes / 8);
    const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(payload.data()), header.payload_bytes);
    if (const char* reason = decompressor.decompress(frame_bytes(), out))
      fail(ErrorCode::corrupt, reason);
    payload_bytes += header.payload_bytes;
  }

  // Reads and checks the chunk at offset_bytes; false where the file is cut. Nothing but buffers is
  // changed.
  bool read_chunk() {
    if (!read_header()) return false;
    check_header();
    if (!read_stored()) return false;
    if (!is_known_kind() && (header.flags & kChunkSkippable) == 0)
      fail(ErrorCode::version, "chunk kind " + std::to_string(header.kind) + " of format version " +
                                   std::to_string(kFormatMajor) + '.' +
                                   std::to_string(header.minor) + ", this program knows " +
                                   std::to_string(kFormatMajor) + '.' +
                                   std::to_string(kFormatMinor));
    if (has_records()) unpack();
    return true;
  }

  // The chunk that was read is current; the next one lies behind it.
  void accept() {
    previous = digest_bytes(stored.data(), stored.size());
    if (!is(ChunkKind::index) && !is(ChunkKind::end)) last_chunk = previous;
    knows_previous = true;
    uuid = header.uuid;
    chunk_offset_bytes = offset_bytes;
    offset_bytes += stored.size();
    next_number = header.number + 1;
    if (!is(ChunkKind::index)) ++chunks;
    next_word = 0;
    records_of_chunk = 0;
    if (!has_records()) header.record_count = 0;  // none for the caller
  }

  // Makes the next chunk with records current; false at the end of the readable part.
  bool load_chunk() {
    for (;;) {
      if (ended) return false;
      if (chunks != 0 && is(ChunkKind::end) && !damage) return finish();
      ended = true;  // unless all goes well: nothing is read after a failure
      if (!(options.salvage && chunks != 0 ? salvage_chunk() : read_chunk())) return false;
      accept();
      ended = false;
      if (has_records() || damage) return true;
    }
  }

  // As read_chunk, but goes on behind what is damaged, and says so.
  bool salvage_chunk() {
    const uint64_t begin_bytes = offset_bytes, begin_number = next_number;
    std::string reason;
    try {
      if (read_chunk()) return true;
      reason = kCutReason;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::environment) throw;
      reason = error.message();
    }
    const bool found = resync();
    if (!found && rest_of_tail_is_cut(begin_bytes, reason)) return false;
    skipped = true;
    damage = Damage{.offset_bytes = begin_bytes,
                    .size_bytes = offset_bytes - begin_bytes,
                    .first_chunk = begin_number,
                    .last_chunk = found ? header.number - 1 : begin_number,
                    .reason = reason};
    return found;
  }

  // Moves to the next chunk of this recording, which may be the one here where the ones before it
  // are lost; false, at the end of the file, when there is none.
  bool resync() {
    const bool knew_previous = std::exchange(knows_previous, false);
    note_foreign(knew_previous);
    while (!is_sound_here()) {
      const std::optional<uint64_t> next = next_chunk_magic(*source, offset_bytes + 8);
      if (!next) {
        offset_bytes = source->size_bytes();
        return false;
      }
      offset_bytes = *next;
    }
    return true;
  }

  // A file that only stops early is cut and not damaged, as without salvage.
  bool rest_of_tail_is_cut(uint64_t begin_bytes, const std::string& reason) {
    if (reason != kCutReason) return false;
    offset_bytes = begin_bytes;
    return true;
  }

  bool is_sound_here() {
    try {
      if (!read_chunk()) return false;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::environment) throw;
      return false;
    }
    const bool is_foreign =
        std::find(foreign.begin(), foreign.end(), header.previous) != foreign.end() ||
        digest_is_foreign();
    if (is_foreign) remember_foreign();
    return !is_foreign;
  }

  bool digest_is_foreign() const {
    const Digest digest = digest_bytes(stored.data(), stored.size());
    return std::find(foreign.begin(), foreign.end(), digest) != foreign.end();
  }

  void remember_foreign() {
    if (foreign.size() == kForeignKept) foreign.erase(foreign.begin());
    foreign.push_back(digest_bytes(stored.data(), stored.size()));
  }

  // A sound chunk with the number that is due and another predecessor is of another recording that
  // began the same way; so is what follows it.
  void note_foreign(bool knew_previous) {
    if (!knew_previous || header.number != next_number || header.previous == previous) return;
    const HeaderResult result = parse(stored, header);
    if (result.state != HeaderState::good || header.uuid != uuid || !has_sound_sizes()) return;
    if (read_stored_or_not()) remember_foreign();
  }
  bool has_sound_sizes() const {
    return header.payload_bytes <= limits::kChunkBytes &&
           header.stored_bytes <= limits::kStoredBytes;
  }
  bool read_stored_or_not() {
    try {
      return read_stored();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::environment) throw;
      return false;
    }
  }

  bool finish() {
    ended = true;
    if (offset_bytes != source->size_bytes()) {
      if (!options.salvage) fail(ErrorCode::corrupt, "bytes after the end");
      skipped = true;
      damage = Damage{.offset_bytes = offset_bytes,
                      .size_bytes = source->size_bytes() - offset_bytes,
                      .first_chunk = next_number,
                      .last_chunk = next_number - 1,
                      .reason = "bytes after the end"};
      offset_bytes = source->size_bytes();
    }
    end = FileEnd::clean;
    return false;
  }

  std::string chunk_context() const {
    return source->name() + ": chunk " + std::to_string(header.number) + " at byte " +
           std::to_string(chunk_offset_bytes);
  }

  // Records of a chunk whose checksums are right do not add up: somebody made it so.
  void bad_records(const char* reason) {
    if (!options.salvage || header.number == 0)
      throw Error(ErrorCode::corrupt, reason, chunk_context());
    skipped = true;
    damage = Damage{.offset_bytes = chunk_offset_bytes,
                    .size_bytes = offset_bytes - chunk_offset_bytes,
                    .first_chunk = header.number,
                    .last_chunk = header.number,
                    .reason = reason};
    records_of_chunk = header.record_count = 0;
    payload.clear();
  }

  // Empty when there is damage instead.
  MessageWords take_record() {
    const size_t left = payload.size() - next_word;
    const uint8_t* table = reinterpret_cast<const uint8_t*>(payload.data() + next_word);
    const size_t words = left < 2 ? 0 : size_t{load_le<uint32_t>(table + 4)} + 1;
    const bool is_last = records_of_chunk + 1 == header.record_count;
    const char* reason = nullptr;
    if (words < 2 || words > left)
      reason = "record runs over the end of its chunk";
    else if (load_le<uint32_t>(table) != 0)
      reason = "record has more than one segment";
    else if (is_last && words != left)
      reason = "chunk holds more records than it declares";
    if (reason != nullptr) {
      bad_records(reason);
      return {};
    }
    const MessageWords message(payload.data() + next_word, words);
    next_word += words;
    ++records_of_chunk;
    ++records;
    return message;
  }
};

ContainerReader::ContainerReader(std::unique_ptr<ByteSource> source, FileKind expected,
                                 ReadOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->source = std::move(source);
  impl_->expected = expected;
  impl_->options = options;
  impl_->load_chunk();
  if (impl_->header.record_count != 1)
    throw Error(ErrorCode::corrupt, "header chunk must hold one record", impl_->chunk_context());
}
ContainerReader::~ContainerReader() = default;
ContainerReader::ContainerReader(ContainerReader&&) noexcept = default;

bool ContainerReader::next(RecordView& out) {
  Impl& r = *impl_;
  out = RecordView();
  for (;;) {
    if (r.damage) {
      out.damage = std::move(r.damage);
      r.damage.reset();
      return true;
    }
    if (r.ended) return false;
    if (r.records_of_chunk < r.header.record_count) break;
    if (r.header.record_count == 0 && !r.payload.empty() && r.has_records())
      r.bad_records("chunk holds more records than it declares");
    else if (!r.load_chunk() && !r.damage)
      return false;
  }
  out.starts_chunk = r.records_of_chunk == 0;
  out.in_end_chunk = r.is(ChunkKind::end);
  out.message = r.take_record();
  return !out.message.empty() || next(out);
}

void ContainerReader::skip_chunk() {
  impl_->records_of_chunk = impl_->header.record_count = 0;
  impl_->payload.clear();
}

bool ContainerReader::seek(StepIndex step, std::span<const ChunkEntry> entries) {
  Impl& r = *impl_;
  const auto holds = [&](const ChunkEntry& e) {
    return e.kind == static_cast<uint8_t>(ChunkKind::data) && e.steps.count != 0 &&
           e.steps.first + e.steps.count > step;
  };
  const auto found = std::find_if(entries.begin(), entries.end(), holds);
  if (found == entries.end() || !r.agrees(*found)) return false;
  // No chunk with earlier steps may have been left out: back to one that holds some, or to the
  // file's first, all must be what they are said to be.
  for (auto e = found; e == found || e->steps.count == 0; --e) {
    if (e->offset_bytes == 0) break;
    if (e == entries.begin() || !r.agrees(e[-1]) || !r.follows(e[-1], *e)) return false;
  }
  r.offset_bytes = found->offset_bytes;
  r.next_number = found->number;
  r.knows_previous = false;
  r.skipped = true;
  r.ended = false;
  r.damage.reset();
  r.end = FileEnd::cut;
  r.header.kind = static_cast<uint8_t>(ChunkKind::data);
  r.header.record_count = r.records_of_chunk = 0;
  r.payload.clear();
  return true;
}

FileEnd ContainerReader::end() const { return impl_->end; }
uint64_t ContainerReader::cut_offset_bytes() const { return impl_->offset_bytes; }
uint64_t ContainerReader::file_bytes() const { return impl_->source->size_bytes(); }
uint64_t ContainerReader::chunks() const { return impl_->chunks; }
uint64_t ContainerReader::records() const { return impl_->records; }
uint64_t ContainerReader::payload_bytes() const { return impl_->payload_bytes; }
const FileUuid& ContainerReader::uuid() const { return impl_->uuid; }
Digest ContainerReader::last_chunk() const { return impl_->last_chunk; }
std::string ContainerReader::context() const { return impl_->chunk_context(); }
ByteSource& ContainerReader::source() { return *impl_->source; }
bool ContainerReader::has_skipped() const { return impl_->skipped; }

}  // namespace redecode
