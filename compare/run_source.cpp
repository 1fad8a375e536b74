#include "compare/run_source.h"

namespace redecode {
namespace {

class MemorySource final : public RunSource {
 public:
  explicit MemorySource(const MemoryRun& run) : run_(run) {}
  const RunHeader& header() const override { return run_.header; }
  FileEnd end() const override { return run_.end; }
  bool next(RunRecord& out) override {
    out = {};
    if (next_finding_ < run_.findings.size()) {
      out.finding = run_.findings[next_finding_++];
      return true;
    }
    if (next_output_ == run_.outputs.size()) return false;
    out.output = run_.outputs[next_output_++];
    return true;
  }

 private:
  const MemoryRun& run_;
  size_t next_output_ = 0, next_finding_ = 0;
};

}  // namespace

OpenRun open_run_in_memory(const MemoryRun& run) {
  return [&run] { return std::make_unique<MemorySource>(run); };
}

}  // namespace redecode
