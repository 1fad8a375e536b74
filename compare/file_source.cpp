#include "compare/run_source.h"

namespace redecode {
namespace {

class FileSource final : public RunSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : reader_(path) {}
  const RunHeader& header() const override { return reader_.header(); }
  FileEnd end() const override { return reader_.summary().end; }
  bool next(RunRecord& out) override { return reader_.next(out); }

 private:
  RunReader reader_;
};

}  // namespace

OpenRun open_run_file(const std::filesystem::path& path) {
  return [path] { return std::make_unique<FileSource>(path); };
}

}  // namespace redecode
