#include <algorithm>
#include <vector>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/crc32c.h"
#include "traces/limits.h"
#include "traces/little_endian.h"
#include "traces/output_file.h"
#include "traces/zstd_frame.h"

namespace redecode {
namespace {

std::span<const uint8_t> as_bytes(MessageWords words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()};
}

// Rows repeat less than columns: the third level takes a tenth off them.
int level_of(FileKind kind, const WriterOptions& options) {
  if (options.zstd_level != 0) return options.zstd_level;
  return kind == FileKind::trace && options.layout == StepLayout::rows ? 3 : 1;
}

}  // namespace

struct ContainerWriter::Impl {
  Impl(const std::filesystem::path& path, FileKind file_kind, const WriterOptions& writer_options,
       bool overwrite)
      : compressor(level_of(file_kind, writer_options)),
        options(writer_options),
        file(path, overwrite) {
    next.file_kind = file_kind;
    options.chunk_bytes = std::clamp<uint64_t>(options.chunk_bytes, 1, limits::kChunkBytes);
    options.chunk_steps = std::clamp<uint32_t>(options.chunk_steps, 1, limits::kRecordsPerChunk);
  }

  void add(MessageWords message) {
    payload.insert(payload.end(), message.begin(), message.end());
    ++next.record_count;
    ++records;
  }

  void write_chunk(ChunkKind kind) {
    const std::vector<uint8_t> frame = compressor.compress(as_bytes(payload));
    next.kind = static_cast<uint8_t>(kind);
    const bool skippable = kind == ChunkKind::schema || kind == ChunkKind::index;
    next.flags = kChunkHasCrc | (skippable ? kChunkSkippable : 0);
    next.payload_bytes = payload.size() * 8;
    next.stored_bytes = frame.size();
    next.stored_crc = crc32c(frame.data(), frame.size());
    chunk = serialize(next);
    chunk.insert(chunk.end(), frame.begin(), frame.end());
    const uint64_t offset_bytes = file.bytes_written();
    file.write(chunk);
    file.mark_whole();
    entries.push_back({.offset_bytes = offset_bytes,
                       .size_bytes = chunk.size(),
                       .number = next.number,
                       .kind = next.kind,
                       .record_count = next.record_count,
                       .steps = {next.first_step, next.step_count},
                       .stored_crc = next.stored_crc});
    next.previous = digest_bytes(chunk.data(), chunk.size());
    ++next.number;
    next.record_count = next.step_count = 0;
    next.first_step = 0;
    payload.clear();
  }

  // A chunk of one record that is none of the caller's records.
  void write_aside(MessageWords message, ChunkKind kind) {
    payload.assign(message.begin(), message.end());
    next.record_count = 1;
    write_chunk(kind);
  }

  void flush() {
    file.throw_if_failed();
    if (!payload.empty()) write_chunk(ChunkKind::data);
  }

  FrameCompressor compressor;
  WriterOptions options;
  OutputFile file;
  ChunkHeader next;  // of the open chunk
  std::vector<uint64_t> payload;
  std::vector<uint8_t> chunk;
  std::vector<ChunkEntry> entries;
  uint64_t records = 0;
};

ContainerWriter::ContainerWriter(const std::filesystem::path& path, FileKind kind,
                                 const WriterOptions& options, bool overwrite)
    : impl_(std::make_unique<Impl>(path, kind, options, overwrite)) {}

ContainerWriter::~ContainerWriter() {
  if (!impl_ || !impl_->file.usable()) return;
  try {
    impl_->flush();
  } catch (const Error&) {
    // A destructor has nobody to tell; the file ends with its last whole chunk.
  }
}
ContainerWriter::ContainerWriter(ContainerWriter&&) noexcept = default;

void ContainerWriter::write_header(MessageWords message) {
  REDECODE_CHECK(impl_->next.number == 0 && impl_->payload.empty());
  limits::check(message.size_bytes(), limits::kChunkBytes, "bytes of a header");
  const Digest low = digest_bytes(message.data(), message.size_bytes(), 1);
  const Digest high = digest_bytes(message.data(), message.size_bytes(), 2);
  store_le<uint64_t>(impl_->next.uuid.data(), low);
  store_le<uint64_t>(impl_->next.uuid.data() + 8, high);
  impl_->add(message);
  impl_->write_chunk(ChunkKind::header);
}

bool ContainerWriter::starts_chunk() const { return impl_->payload.empty(); }

void ContainerWriter::throw_if_failed() const { impl_->file.throw_if_failed(); }

bool ContainerWriter::fits(MessageWords message) const {
  const uint64_t total_bytes = (impl_->payload.size() + message.size()) * 8;
  return impl_->payload.empty() || total_bytes <= limits::kChunkBytes;
}

void ContainerWriter::write_schema(MessageWords message) {
  REDECODE_CHECK(impl_->next.number == 1 && impl_->payload.empty());
  impl_->write_aside(message, ChunkKind::schema);
}

void ContainerWriter::append(MessageWords message, StepSpan steps) {
  Impl& w = *impl_;
  w.file.throw_if_failed();
  REDECODE_CHECK(w.next.number > 0);
  if (message.size_bytes() > limits::kChunkBytes || !fits(message)) {
    throw Error(ErrorCode::limit,
                "record has " + std::to_string(message.size_bytes()) + " bytes, at most " +
                    std::to_string(limits::kChunkBytes) +
                    " fit into a chunk; record fewer values a step (full logits, probe values)",
                w.file.name() +
                    (steps.count != 0 ? ": step " + std::to_string(steps.first) : std::string()));
  }
  if (steps.count != 0) {
    if (w.next.step_count == 0) w.next.first_step = steps.first;
    w.next.step_count += steps.count;
  }
  w.add(message);
  if (w.payload.size() * 8 >= w.options.chunk_bytes || w.next.step_count >= w.options.chunk_steps ||
      w.next.record_count >= limits::kRecordsPerChunk)
    w.flush();
}

void ContainerWriter::flush() { impl_->flush(); }

void ContainerWriter::sync() {
  impl_->flush();
  impl_->file.sync();
}

void ContainerWriter::close(MessageWords index, MessageWords end_record) {
  impl_->flush();
  if (!index.empty() && index.size_bytes() <= limits::kChunkBytes)
    impl_->write_aside(index, ChunkKind::index);
  impl_->write_aside(end_record, ChunkKind::end);
  if (impl_->options.sync_on_close) impl_->file.sync();
  impl_->file.close();
}

const std::vector<ChunkEntry>& ContainerWriter::entries() const { return impl_->entries; }
uint64_t ContainerWriter::chunks() const { return impl_->next.number; }
uint64_t ContainerWriter::records() const { return impl_->records; }
uint64_t ContainerWriter::payload_bytes() const { return impl_->payload.size() * 8; }
Digest ContainerWriter::last_chunk() const { return impl_->next.previous; }
uint64_t ContainerWriter::bytes_written() const { return impl_->file.bytes_written(); }

}  // namespace redecode
