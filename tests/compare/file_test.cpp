#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>

#include "compare/compare_runs.h"
#include "compare/report.h"
#include "tests/compare/make.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::test;
namespace fs = std::filesystem;

namespace {
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("redecode-compare-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

void write(const fs::path& path, const MemoryRun& run) {
  WriterOptions options;
  options.chunk_steps = 1;
  options.schema = options.index = false;  // so that a cut at any share cuts outputs
  RunWriter writer(path, run.header, options, true);
  for (const StepOutput& output : run.outputs) {
    writer.write(output);
    for (const Finding& finding : run.findings)
      if (finding.step == output.step) writer.write(finding);
  }
  writer.close();
}

Digest write_trace(const fs::path& path) {
  TraceHeader header;
  header.writer = "redecode 0.1.0";
  header.model = make_header().model;
  TraceWriter writer(path, header);
  for (const Step& step : make_trace().steps) writer.write(step);
  writer.close();
  return writer.trace_digest();
}

MemoryRun diverged(const MemoryRun& golden) {
  MemoryRun out = golden;
  out.outputs[1].rows[1].token = 3;
  out.findings = {make_finding(FindingKind::race, 1, "indexer.logits", "wq_b")};
  return out;
}

ErrorCode code_of(const fs::path& golden, const fs::path& candidate) {
  try {
    compare_runs(golden, candidate, std::nullopt);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::usage;
}
}  // namespace

TEST_CASE("files give the same report as the runs that were written to them") {
  const Folder folder;
  const MemoryRun golden = make_run(4), candidate = diverged(golden);
  write(folder / "golden.rdr", golden);
  write(folder / "candidate.rdr", candidate);
  const CompareResult from_files =
      compare_runs(folder / "golden.rdr", folder / "candidate.rdr", std::nullopt);
  const CompareResult from_memory =
      compare_runs(open_run_in_memory(golden), open_run_in_memory(candidate), nullptr);
  CHECK(from_files.verdict.kind == VerdictKind::diverged);
  CHECK(report_json(from_files) == report_json(from_memory));
  CHECK(report_text(from_files) == report_text(from_memory));
  CHECK(compare_runs(folder / "golden.rdr", folder / "golden.rdr", std::nullopt).verdict ==
        Verdict{});
}

TEST_CASE("a trace file names the sessions") {
  const Folder folder;
  MemoryRun golden = make_run(2);
  golden.header.trace_digest = write_trace(folder / "trace.rdt");
  write(folder / "golden.rdr", golden);
  write(folder / "candidate.rdr", diverged(golden));
  const CompareResult result =
      compare_runs(folder / "golden.rdr", folder / "candidate.rdr", folder / "trace.rdt");
  CHECK(result.verdict.kind == VerdictKind::diverged);
  CHECK(result.sessions_known);
  CHECK(result.sessions.sessions.size() == 2);
  CHECK(result.sessions.corrupted == 1);
  CHECK(result.session == SessionPlace{1, 0});
  golden.header.trace_digest ^= 1;
  write(folder / "golden.rdr", golden);
  write(folder / "candidate.rdr", golden);
  CHECK(compare_runs(folder / "golden.rdr", folder / "candidate.rdr", folder / "trace.rdt")
            .verdict.kind == VerdictKind::incomparable);
}

TEST_CASE("a file that was cut is incomparable, and identical as far as it goes") {
  const Folder folder;
  const MemoryRun golden = make_run(4);
  write(folder / "golden.rdr", golden);
  write(folder / "candidate.rdr", golden);
  const fs::path path = folder / "candidate.rdr";
  const auto size_bytes = fs::file_size(path);
  CompareOptions prefix;
  prefix.allow_prefix = true;
  uint64_t fewest_steps = 4;
  for (const uintmax_t cut_bytes : {uintmax_t{1}, size_bytes / 4, size_bytes / 2}) {
    fs::resize_file(path, size_bytes - cut_bytes);
    const CompareResult strict = compare_runs(folder / "golden.rdr", path, std::nullopt);
    CHECK(strict.verdict.kind == VerdictKind::incomparable);
    CHECK(strict.coverage.candidate_end == FileEnd::cut);
    const CompareResult lenient = compare_runs(folder / "golden.rdr", path, std::nullopt, prefix);
    CHECK(lenient.verdict.kind == VerdictKind::identical);
    CHECK(lenient.coverage.common_steps <= fewest_steps);
    fewest_steps = lenient.coverage.common_steps;
  }
  CHECK(fewest_steps < 4);
}

TEST_CASE("files that are not there or no runs are errors") {
  const Folder folder;
  write(folder / "golden.rdr", make_run(1));
  CHECK(code_of(folder / "golden.rdr", folder / "none.rdr") == ErrorCode::missing);
  CHECK(code_of(folder / "none.rdr", folder / "golden.rdr") == ErrorCode::missing);
  write_trace(folder / "trace.rdt");
  CHECK_THROWS_AS(compare_runs(folder / "golden.rdr", folder / "trace.rdt", std::nullopt), Error);
}
