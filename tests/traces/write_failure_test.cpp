#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>

#include "tests/traces/chunk_bytes.h"
#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/error.h"
#include "traces/trace_file.h"
#include "traces/trace_set.h"

namespace redecode {
namespace {

// Files may not grow above this: what a full disk looks like, for this process alone.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

std::string outcome(auto&& act) {
  try {
    act();
  } catch (const Error& e) {
    return std::string(error_name(e.code())) + ": " + e.message() + " at " + e.context();
  }
  return "none";
}

WriterOptions small_chunks() {
  WriterOptions options;
  options.chunk_steps = 2;
  return options;
}

std::vector<Step> read_steps(const std::filesystem::path& path, FileSummary& summary) {
  TraceReader reader(path);
  std::vector<Step> steps;
  TraceRecord record;
  while (reader.next(record))
    if (record.step) steps.push_back(*record.step);
  summary = reader.summary();
  return steps;
}

}  // namespace

TEST_CASE("a disk that fills up leaves whole chunks, one error, and no half of anything") {
  const test::TempFolder folder;
  const TraceHeader header = test::sample_trace_header();
  std::vector<Step> steps;
  test::StepMaker maker(header, 4);
  for (int i = 0; i < 12; ++i) steps.push_back(maker.next());
  const auto write_all = [&](const std::filesystem::path& path) {
    TraceWriter writer(path, header, small_chunks());
    for (const Step& step : steps) writer.write(step);
    writer.close();
    return writer.bytes_written();
  };
  const uint64_t whole_bytes = write_all(folder / "whole.rdt");
  const std::vector<test::ChunkBytes> chunks = test::split(test::read_bytes(folder / "whole.rdt"));
  for (uint64_t room = chunks[0].end; room < whole_bytes; room += 61) {
    const auto path = folder / ("t" + std::to_string(room) + ".rdt");
    size_t whole = 0;
    while (whole < chunks.size() && chunks[whole].end <= room) ++whole;
    std::string first;
    {
      const FileSizeLimit limit(room);
      first = outcome([&] { write_all(path); });
    }
    REQUIRE(first.find("environment: cannot write: File too large") == 0);
    REQUIRE(std::filesystem::file_size(path) == chunks[whole - 1].end);
    FileSummary summary;
    const std::vector<Step> read = read_steps(path, summary);
    REQUIRE(summary.end == FileEnd::cut);
    REQUIRE(summary.cut_offset_bytes == chunks[whole - 1].end);
    REQUIRE(read.size() == std::min<size_t>(whole < 2 ? 0 : (whole - 2) * 2, steps.size()));
    REQUIRE(std::equal(read.begin(), read.end(), steps.begin()));
  }
}

TEST_CASE("after a failed write every call says the first error again") {
  const test::TempFolder folder;
  TraceWriter writer(folder / "t.rdt", test::sample_trace_header(), small_chunks());
  test::StepMaker maker(test::sample_trace_header(), 5);
  const uint64_t before_bytes = writer.bytes_written();
  std::string first;
  {
    const FileSizeLimit limit(before_bytes + 10);
    writer.write(maker.next());
    first = outcome([&] { writer.write(maker.next()); });
  }
  // There is room again, and yet a hole must not be written over.
  CHECK(first.find("environment") == 0);
  CHECK(outcome([&] { writer.write(maker.next()); }) == first);
  CHECK(outcome([&] { writer.flush(); }) == first);
  CHECK(outcome([&] { writer.sync(); }) == first);
  CHECK(outcome([&] { writer.close(); }) == first);
  CHECK(std::filesystem::file_size(folder / "t.rdt") == before_bytes);
}

TEST_CASE("a second writer on one file is refused and changes nothing") {
  const test::TempFolder folder;
  const auto path = folder / "t.rdt";
  const TraceHeader header = test::sample_trace_header();
  std::vector<Step> steps;
  {
    TraceWriter writer(path, header, small_chunks());
    test::StepMaker maker(header, 6);
    for (int i = 0; i < 6; ++i) {
      steps.push_back(maker.next());
      writer.write(steps.back());
      CHECK(outcome([&] {
              TraceWriter second(path, header, {}, true);
            }).starts_with("usage: another process is writing this file"));
    }
    writer.close();
  }
  FileSummary summary;
  CHECK(read_steps(path, summary) == steps);
  CHECK(summary.end == FileEnd::clean);
  CHECK(outcome([&] { TraceWriter(path, header, {}, true).close(); }) == "none");
}

TEST_CASE("a folder that may not be written is an error that names the file") {
  if (::geteuid() == 0) SKIP("root may write everywhere");
  const test::TempFolder folder;
  std::filesystem::create_directory(folder / "shut");
  std::filesystem::permissions(
      folder / "shut", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const std::string said =
      outcome([&] { TraceWriter writer(folder / "shut" / "t.rdt", test::sample_trace_header()); });
  CHECK(said.starts_with("environment: cannot create: Permission denied"));
  CHECK(said.find("t.rdt") != std::string::npos);
}

TEST_CASE("sync and sync_on_close write what close writes") {
  const test::TempFolder folder;
  const TraceHeader header = test::sample_trace_header();
  for (const bool sync : {false, true}) {
    WriterOptions options = small_chunks();
    options.sync_on_close = sync;
    TraceWriter writer(folder / (sync ? "a.rdt" : "b.rdt"), header, options);
    test::StepMaker maker(header, 7);
    for (int i = 0; i < 8; ++i) {
      writer.write(maker.next());
      if (i == 3 && sync) writer.sync();
      if (i == 3 && !sync) writer.flush();
    }
    writer.close();
  }
  CHECK(test::read_bytes(folder / "a.rdt") == test::read_bytes(folder / "b.rdt"));
}

}  // namespace redecode
