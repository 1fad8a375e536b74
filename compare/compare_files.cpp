#include "compare/compare_runs.h"

namespace redecode {

CompareResult compare_runs(const std::filesystem::path& golden,
                           const std::filesystem::path& candidate,
                           const std::optional<std::filesystem::path>& trace,
                           const CompareOptions& options) {
  std::optional<Trace> loaded;
  if (trace) loaded = load_trace(*trace);
  return compare_runs(open_run_file(golden), open_run_file(candidate), loaded ? &*loaded : nullptr,
                      options);
}

}  // namespace redecode
