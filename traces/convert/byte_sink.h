// traces/convert/byte_sink.h - ByteSink: where an export writes its bytes, in order; FileSink: a
// file that is whole or not there.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "traces/output_file.h"

namespace redecode {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Errors: environment.
  virtual void write(std::string_view bytes) = 0;
};

// The file is made by the first write, so that an export that is refused leaves an old file alone.
class FileSink final : public ByteSink {
 public:
  // Errors: usage (exists and not overwrite).
  FileSink(std::filesystem::path path, bool overwrite);
  // Without close() the file is removed: half an export is none.
  ~FileSink() override;
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  // Errors: as OutputFile.
  void write(std::string_view bytes) override;
  void close();
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  void open();
  void drain();

  std::filesystem::path path_;
  bool overwrite_;
  bool closed_ = false;
  std::unique_ptr<OutputFile> file_;
  std::string buffer_;
  uint64_t bytes_written_ = 0;
};

// Bytes in memory, for tests and small results.
class StringSink final : public ByteSink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

}  // namespace redecode
