#include "traces/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

// Devices and some file systems have nothing to wait for.
bool cannot_sync(int error) { return error == EINVAL || error == ENOSYS || error == ENOTSUP; }

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

WriteLock::~WriteLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
WriteLock::WriteLock(WriteLock&& other) noexcept : descriptor_(other.release()) {}
int WriteLock::release() { return std::exchange(descriptor_, -1); }

void WriteLock::take(const std::string& name) const {
  int result = 0;
  do {
    result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  const int error = errno;
  if (error == EWOULDBLOCK)
    throw Error(ErrorCode::usage,
                "another process is writing this file: name another one, or end that recording",
                name);
  // File systems without locks cannot tell; one writer is then up to the user.
  if (error != ENOLCK && !cannot_sync(error))
    throw Error(ErrorCode::environment, std::string("cannot lock: ") + std::strerror(error), name);
}

WriteLock WriteLock::of_folder(const std::filesystem::path& path) {
  WriteLock lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.descriptor() < 0) {
    const int error = errno;
    throw Error(error == ENOENT ? ErrorCode::missing : ErrorCode::environment,
                std::string("cannot open the folder: ") + std::strerror(error), path.string());
  }
  lock.take(path.string());
  return lock;
}

int OutputFile::open_or_throw(const std::filesystem::path& path, bool overwrite) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL);
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor >= 0) return descriptor;
  const int error = errno;
  const std::string name = path.string();
  if (error == EEXIST)
    throw Error(ErrorCode::usage, "file exists; allow overwriting to replace it", name);
  if (error == ENOENT || error == ENOTDIR)
    throw Error(ErrorCode::missing, "cannot create: no such folder", name);
  throw Error(ErrorCode::environment, std::string("cannot create: ") + std::strerror(error), name);
}

OutputFile::OutputFile(const std::filesystem::path& path, bool overwrite)
    : name_(path.string()), folder_(folder_of(path)), file_(open_or_throw(path, overwrite)) {
  file_.take(name_);
  // A device has no length.
  if (::ftruncate(file_.descriptor(), 0) != 0 && errno != EINVAL) fail(errno);
}

void OutputFile::write(std::span<const uint8_t> bytes) {
  throw_if_failed();
  REDECODE_CHECK(file_.descriptor() >= 0);
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.descriptor(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
    bytes_written_ += static_cast<uint64_t>(n);
  }
}

void OutputFile::sync() {
  throw_if_failed();
  REDECODE_CHECK(file_.descriptor() >= 0);
  if (::fdatasync(file_.descriptor()) != 0 && !cannot_sync(errno)) fail(errno);
  if (!std::exchange(folder_is_synced_, true)) sync_folder();
}

// A file whose folder entry never reached the disk is lost with all that was synced into it.
void OutputFile::sync_folder() {
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written and not read
  const int result = ::fsync(folder);
  const int error = errno;
  ::close(folder);
  if (result != 0 && !cannot_sync(error)) fail(error);
}

void OutputFile::close() {
  throw_if_failed();
  const int result = ::close(file_.release());
  if (result != 0 && errno != EINTR) fail(errno);
}

void OutputFile::throw_if_failed() const {
  if (error_ == 0) return;
  throw Error(ErrorCode::environment, std::string("cannot write: ") + std::strerror(error_),
              name_ + ": byte " + std::to_string(bytes_written_));
}

void OutputFile::fail(int error) {
  error_ = error;
  // Best effort: where it does not work, readers find the cut by themselves.
  if (file_.descriptor() >= 0 &&
      ::ftruncate(file_.descriptor(), static_cast<off_t>(whole_bytes_)) == 0)
    bytes_written_ = whole_bytes_;
  throw_if_failed();
  std::abort();
}

}  // namespace redecode
