#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <string>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

struct CommandResult {
  int status = -1;
  std::string output;
};

CommandResult shell(const std::string& command) {
  CommandResult result;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  size_t count = 0;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0)
    result.output.append(buffer.data(), count);
  result.status = ::pclose(pipe);
  return result;
}

bool has_tools() { return shell("zstd --version && capnp --version").status == 0; }

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

CommandResult convert(const std::filesystem::path& file, const std::string& schema,
                      const std::string& type) {
  const std::string root = REDECODE_SOURCE_DIR;
  return shell("zstd -dc '" + file.string() + "' | capnp convert binary:text '" + root +
               "/traces/schema/" + schema + "' " + type);
}

}  // namespace

TEST_CASE("a trace decodes with zstd and capnp alone") {
  if (!has_tools()) SKIP("zstd or capnp is not installed");
  const test::TempFolder folder;
  const auto path = folder / "t.rdt";
  const TraceHeader header = test::sample_trace_header();
  test::StepMaker maker(header, 3);
  WriterOptions options;
  options.chunk_steps = 8;
  {
    TraceWriter writer(path, header, options);
    for (int i = 0; i < 30; ++i) writer.write(maker.next());
    writer.close();
  }
  CHECK(shell("zstd -qt '" + path.string() + "'").status == 0);
  const CommandResult result = convert(path, "trace.capnp", "TraceRecord");
  CHECK(result.status == 0);
  CHECK(occurrences(result.output, "step = (") == 30);
  CHECK(occurrences(result.output, "header = (") == 1);
  CHECK(occurrences(result.output, "end = (") == 1);
  CHECK(occurrences(result.output, "writer = \"redecode 0.1.0\"") == 1);
  CHECK(occurrences(result.output, "index = 29") == 1);
}

TEST_CASE("a run decodes with zstd and capnp alone, raw blocks included") {
  if (!has_tools()) SKIP("zstd or capnp is not installed");
  const test::TempFolder folder;
  const auto path = folder / "r.rdr";
  {
    RunWriter writer(path, test::sample_run_header());
    StepOutput output;
    output.rows.resize(1);
    output.rows[0].logits.assign(400000, 0.0f);
    writer.write(output);
    writer.flush();
    Finding finding;
    finding.kind = FindingKind::use_after_free;
    writer.write(finding);
    writer.close();
  }
  CHECK(shell("zstd -qt '" + path.string() + "'").status == 0);
  const CommandResult result = convert(path, "run.capnp", "RunRecord");
  CHECK(result.status == 0);
  CHECK(occurrences(result.output, "kind = useAfterFree") == 1);
  CHECK(occurrences(result.output, "output = (") == 1);
}

}  // namespace redecode
