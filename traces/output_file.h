// traces/output_file.h - OutputFile: a file that one writer owns and that never ends in half a
// chunk. Internal to traces/*.cpp.
//
// The first failure is kept: every later call throws it again, for what follows a hole in a file
// could not be read. The file is then cut back to its last whole part.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace redecode {

// An exclusive lock on an open file or folder. It belongs to the opening, so that a second writer
// in the same process is refused as well, and it goes when its holder dies.
class WriteLock {
 public:
  explicit WriteLock(int descriptor) : descriptor_(descriptor) {}
  // Errors: missing, environment, usage (another process writes there).
  static WriteLock of_folder(const std::filesystem::path& path);
  ~WriteLock();
  WriteLock(WriteLock&& other) noexcept;
  WriteLock& operator=(WriteLock&&) = delete;
  // Errors: usage, environment.
  void take(const std::string& name) const;
  int descriptor() const { return descriptor_; }
  int release();  // the descriptor, no longer ours to close

 private:
  int descriptor_;
};

class OutputFile {
 public:
  // Creates the file, or empties an old one once it is ours alone. Errors: usage (exists and not
  // overwrite; another process writes it), missing (no such folder), environment.
  OutputFile(const std::filesystem::path& path, bool overwrite);

  // Errors of all below: environment, with the system's words.
  void write(std::span<const uint8_t> bytes);
  // From here on the file is whole: a failed write is cut back to this.
  void mark_whole() { whole_bytes_ = bytes_written_; }
  // Waits until the disk has everything, the first time the folder's entry too.
  void sync();
  void close();
  void throw_if_failed() const;

  bool usable() const { return error_ == 0 && file_.descriptor() >= 0; }
  uint64_t bytes_written() const { return bytes_written_; }
  const std::string& name() const { return name_; }

 private:
  static int open_or_throw(const std::filesystem::path& path, bool overwrite);
  void sync_folder();
  [[noreturn]] void fail(int error);

  std::string name_;
  std::filesystem::path folder_;
  WriteLock file_;
  bool folder_is_synced_ = false;
  int error_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t whole_bytes_ = 0;
};

}  // namespace redecode
