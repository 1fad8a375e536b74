#include "traces/trace_set.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "traces/error.h"
#include "traces/output_file.h"
#include "traces/trace_set_reader.h"

namespace redecode {
namespace {

std::string file_name(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%08u.rdt", number);
  return text;
}

}  // namespace

struct TraceSetWriter::Impl {
  Impl(const std::filesystem::path& set_path, const TraceHeader& set_header,
       const WriterOptions& writer_options, const RotateOptions& rotate_options, bool overwrite)
      : path(set_path), header(set_header), options(writer_options), rotate(rotate_options) {
    if (!rotate.any()) {
      writer.emplace(path, header, options, overwrite);
      return;
    }
    make_folder(overwrite);
    open_file(overwrite);
  }

  void make_folder(bool overwrite) {
    std::error_code error;
    std::filesystem::create_directory(path, error);
    if (error && !std::filesystem::is_directory(path))
      throw Error(error == std::errc::no_such_file_or_directory ? ErrorCode::missing
                                                                : ErrorCode::environment,
                  "cannot make the folder of the set: " + error.message(), path.string());
    lock.emplace(WriteLock::of_folder(path));
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (!is_set_file_name(entry.path().filename().string())) continue;
      if (!overwrite)
        throw Error(ErrorCode::usage,
                    "the folder holds a trace set; allow overwriting to replace it", path.string());
      std::filesystem::remove(entry.path());
    }
  }

  void open_file(bool overwrite) {
    writer.emplace(path / file_name(file.number), header, options, overwrite);
    if (header.place.set.empty()) header.place.set = manifest.set = writer->id();
    file.name = file_name(file.number);
  }

  void close_file() {
    writer->close();
    file.size_bytes = writer->bytes_written();
    file.end = FileEnd::clean;
    closed_bytes += file.size_bytes;
    manifest.files.push_back(file);
    drop_oldest();
    write_manifest();
  }

  void drop_oldest() {
    while (rotate.keep_files != 0 && manifest.files.size() > rotate.keep_files) {
      std::error_code ignored;
      std::filesystem::remove(path / manifest.files.front().name, ignored);
      manifest.files.erase(manifest.files.begin());
    }
  }

  void write_manifest() const {
    const std::filesystem::path temporary = path / "manifest.json.new";
    {
      std::ofstream out(temporary, std::ios::trunc);
      out << to_json(manifest);
      out.flush();
      if (!out) throw Error(ErrorCode::environment, "cannot write", temporary.string());
    }
    std::filesystem::rename(temporary, path / "manifest.json");
  }

  bool is_due(const Step& step) const {
    if (!rotate.any() || file.steps == 0) return false;
    if (rotate.file_bytes != 0 && writer->bytes_written() >= rotate.file_bytes) return true;
    return rotate.file_us != 0 && step.time_us >= file.first_us + rotate.file_us;
  }

  void rotate_file() {
    const Keyframe keyframe = writer->keyframe();
    writer->flush();
    header.place.previous = writer->last_chunk();
    close_file();
    file = SetFile{.name = {},
                   .number = file.number + 1,
                   .size_bytes = 0,
                   .first_step = 0,
                   .steps = 0,
                   .first_us = 0,
                   .last_us = 0,
                   .end = FileEnd::cut};
    header.place.number = file.number;
    open_file(true);
    writer->restore(keyframe);
  }

  void write(const Step& step) {
    if (is_due(step)) rotate_file();
    writer->write(step);
    if (file.steps++ == 0) {
      file.first_step = step.index;
      file.first_us = step.time_us;
    }
    file.last_us = step.time_us;
    digest = combine(digest, digest_step(step));
  }

  std::filesystem::path path;
  TraceHeader header;
  WriterOptions options;
  RotateOptions rotate;
  std::optional<WriteLock> lock;  // of the folder
  std::optional<TraceWriter> writer;
  Manifest manifest;
  SetFile file;
  uint64_t closed_bytes = 0;
  Digest digest = 0;
  bool closed = false;
};

TraceSetWriter::TraceSetWriter(const std::filesystem::path& path, const TraceHeader& header,
                               const WriterOptions& options, const RotateOptions& rotate,
                               bool overwrite)
    : impl_(std::make_unique<Impl>(path, header, options, rotate, overwrite)) {}
TraceSetWriter::~TraceSetWriter() = default;
TraceSetWriter::TraceSetWriter(TraceSetWriter&&) noexcept = default;

void TraceSetWriter::write(const Step& step) {
  if (impl_->rotate.any())
    impl_->write(step);
  else
    impl_->writer->write(step);
}
void TraceSetWriter::write(const StepOutput& output) { impl_->writer->write(output); }
void TraceSetWriter::write(const Event& event) { impl_->writer->write(event); }
void TraceSetWriter::write(const Gap& gap) { impl_->writer->write(gap); }
void TraceSetWriter::write(const Exchange& exchange) { impl_->writer->write(exchange); }
void TraceSetWriter::flush() { impl_->writer->flush(); }
void TraceSetWriter::sync() { impl_->writer->sync(); }

void TraceSetWriter::close() {
  if (std::exchange(impl_->closed, true)) return;
  if (impl_->rotate.any())
    impl_->close_file();
  else
    impl_->writer->close();
}

Digest TraceSetWriter::trace_digest() const {
  return impl_->rotate.any() ? impl_->digest : impl_->writer->trace_digest();
}
uint64_t TraceSetWriter::bytes_written() const {
  return impl_->closed_bytes +
         (impl_->closed && impl_->rotate.any() ? 0 : impl_->writer->bytes_written());
}
uint64_t TraceSetWriter::open_bytes() const {
  return impl_->closed ? 0 : impl_->writer->open_bytes();
}
uint32_t TraceSetWriter::files() const { return impl_->file.number + 1; }

}  // namespace redecode
