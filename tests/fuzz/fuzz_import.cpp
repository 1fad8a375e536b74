// First byte modulo 4: a Mooncake trace, an Azure trace, lines of OpenAI requests, or whatever the
// first line tells, imported as from a file.
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "traces/byte_source.h"
#include "traces/check.h"
#include "traces/convert/import_openai.h"
#include "traces/convert/import_requests.h"
#include "traces/convert/line_stream.h"
#include "traces/error.h"
#include "traces/import_azure.h"
#include "traces/import_mooncake.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

void openai_lines(std::span<const uint8_t> bytes) {
  const auto source = in_memory({bytes.begin(), bytes.end()}, "fuzz");
  LineStream lines(*source);
  std::string line;
  while (lines.next(line)) {
    REDECODE_CHECK(lines.is_too_long() || read_line_at(*source, lines.place()) == line);
    try {
      parse_openai_line(line);
    } catch (const Error&) {
    }
  }
}

// What is imported can be read, and is as much as was said.
void whole_file(std::span<const uint8_t> bytes) {
  static const std::filesystem::path folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "fuzz-import-XXXXXX").string();
    REDECODE_CHECK(mkdtemp(name.data()) != nullptr);
    return name;
  }();
  const auto from = folder / "in.txt", to = folder / "out.rdt";
  FILE* file = std::fopen(from.c_str(), "wb");
  REDECODE_CHECK(file != nullptr);
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  ImportOptions options;
  options.skip_bad = true;
  options.overwrite = true;
  try {
    const ImportResult result = import_requests(from, to, options);
    to_json(result, "a", "b");
    const Trace trace = load_trace(to);
    REDECODE_CHECK_OP(trace.exchanges.size(), ==, result.requests);
    for (size_t i = 1; i < trace.exchanges.size(); ++i)
      REDECODE_CHECK_OP(trace.exchanges[i - 1].start_us, <=, trace.exchanges[i].start_us);
  } catch (const Error& e) {
    REDECODE_CHECK(e.code() != ErrorCode::environment);
  }
}

}  // namespace
}  // namespace redecode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    if (data[0] % 4 == 0) parse_mooncake(text, "fuzz");
    if (data[0] % 4 == 1) parse_azure(text, "fuzz");
  } catch (const Error&) {
  }
  if (data[0] % 4 == 2) openai_lines(bytes);
  if (data[0] % 4 == 3) whole_file(bytes);
  return 0;
}
