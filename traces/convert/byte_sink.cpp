#include "traces/convert/byte_sink.h"

#include <span>
#include <utility>

#include "traces/error.h"

namespace redecode {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

}  // namespace

FileSink::FileSink(std::filesystem::path path, bool overwrite)
    : path_(std::move(path)), overwrite_(overwrite) {
  std::error_code ignored;
  if (!overwrite_ && std::filesystem::exists(path_, ignored))
    throw Error(ErrorCode::usage, "the file exists; --force replaces it", path_.string());
}

FileSink::~FileSink() {
  if (closed_ || !file_) return;
  file_.reset();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
}

void FileSink::open() {
  if (!file_) file_ = std::make_unique<OutputFile>(path_, overwrite_);
}

void FileSink::drain() {
  open();
  file_->write({reinterpret_cast<const uint8_t*>(buffer_.data()), buffer_.size()});
  buffer_.clear();
}

void FileSink::write(std::string_view bytes) {
  open();
  bytes_written_ += bytes.size();
  if (bytes.size() >= kBufferBytes) {
    drain();
    file_->write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    return;
  }
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) drain();
}

void FileSink::close() {
  drain();
  file_->close();
  closed_ = true;
}

}  // namespace redecode
