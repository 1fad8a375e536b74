#include "traces/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "traces/error.h"
#include "traces/limits.h"

namespace redecode {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : name_(path.string()) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) {
      const int error = errno;
      const bool absent = error == ENOENT || error == ENOTDIR;
      throw Error(absent ? ErrorCode::missing : ErrorCode::environment,
                  std::string("cannot open: ") + std::strerror(error), name_);
    }
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(descriptor_);
      throw Error(ErrorCode::corrupt, "not a regular file", name_);
    }
    size_bytes_ = static_cast<uint64_t>(info.st_size);
  }
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  uint64_t size_bytes() const override { return size_bytes_; }
  const std::string& name() const override { return name_; }

  size_t read(uint64_t offset_bytes, std::span<uint8_t> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::pread(descriptor_, out.data() + done, out.size() - done,
                                static_cast<off_t>(offset_bytes + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        throw Error(ErrorCode::environment, std::string("cannot read: ") + std::strerror(errno),
                    name_ + ": byte " + std::to_string(offset_bytes + done));
      }
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::vector<uint8_t> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  size_t read(uint64_t offset_bytes, std::span<uint8_t> out) override {
    if (offset_bytes >= bytes_.size()) return 0;
    const size_t count = std::min<uint64_t>(out.size(), bytes_.size() - offset_bytes);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset_bytes), count, out.begin());
    return count;
  }

 private:
  std::vector<uint8_t> bytes_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<ByteSource> in_memory(std::vector<uint8_t> bytes, std::string name) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

std::string read_text_file(const std::filesystem::path& path, uint64_t cap_bytes) {
  FileSource source(path);
  if (source.size_bytes() > cap_bytes) {
    throw Error(ErrorCode::limit,
                "file has " + std::to_string(source.size_bytes()) + " bytes, at most " +
                    std::to_string(cap_bytes) + " allowed",
                source.name());
  }
  std::string text(source.size_bytes(), '\0');
  const size_t count = source.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  text.resize(count);
  return text;
}

}  // namespace redecode
