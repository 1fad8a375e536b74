// traces/trace_set_reader.h - SetSource: the files of a trace one after the other, be it one file
// or a rotated set. Internal to traces/*.cpp.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "traces/byte_source.h"
#include "traces/trace_set.h"

namespace redecode {

// Whether a file of this name belongs to the set of its folder: 00000012.rdt.
bool is_set_file_name(const std::string& name);

class SetSource {
 public:
  // A file, a set's folder, or its manifest. Errors: as open_file and scan_set.
  explicit SetSource(const std::filesystem::path& path);
  explicit SetSource(std::unique_ptr<ByteSource> source) : first_(std::move(source)) {}

  std::unique_ptr<ByteSource> take_first();
  bool has_next() const { return next_ < files_.size(); }
  bool is_set() const { return !files_.empty(); }
  void restart() { next_ = 0; }  // of a set: take_first gives its first file again
  // nullptr at the end. `missing`: a number between this file and the one before is not there.
  // Errors: missing, unless `skip_missing`; as open_file.
  std::unique_ptr<ByteSource> take_next(bool skip_missing, bool& missing);

 private:
  std::filesystem::path folder_;
  std::vector<SetFile> files_;
  size_t next_ = 0;
  std::unique_ptr<ByteSource> first_;
};

}  // namespace redecode
