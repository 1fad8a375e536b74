#include <catch2/catch_test_macros.hpp>

#include "recorder/workload.h"
#include "tests/traces/temp_folder.h"
#include "traces/convert/import_requests.h"
#include "traces/error.h"
#include "traces/samples.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using test::TempFolder;

void write_text(const std::filesystem::path& path, std::string_view text) {
  test::write_bytes(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::vector<Exchange> exchanges_of(const std::filesystem::path& path) {
  return load_trace(path).exchanges;
}

ImportResult import_text(const TempFolder& folder, std::string_view text,
                         ImportOptions options = {}) {
  options.overwrite = true;
  write_text(folder / "in.txt", text);
  return import_requests(folder / "in.txt", folder / "out.rdt", options);
}

Error error_of(std::string_view text, std::optional<ImportFormat> format = {}) {
  const TempFolder folder;
  ImportOptions options;
  options.format = format;
  try {
    import_text(folder, text, options);
  } catch (const Error& e) {
    return e;
  }
  FAIL("accepted: " << text.substr(0, 80));
  return Error(ErrorCode::usage, "");
}

constexpr std::string_view kOpenAi =
    R"({"prompt":"abc","max_tokens":3,"timestamp":"2024-05-01T00:00:02Z","temperature":0.5}
{"custom_id":"x","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"hi"}],"max_tokens":5,"seed":7}}
)";

}  // namespace

TEST_CASE("import: OpenAI requests keep prompt, limits, sampling and times", "[convert]") {
  const TempFolder folder;
  const ImportResult result = import_text(folder, kOpenAi);
  CHECK(result.format == ImportFormat::openai);
  CHECK(result.requests == 2);
  CHECK(result.without_time == 1);
  const auto exchanges = exchanges_of(folder / "out.rdt");
  REQUIRE(exchanges.size() == 2);
  CHECK(exchanges[0].end == ExchangeEnd::not_sent);
  CHECK(exchanges[0].prompt.find("abc") != std::string::npos);
  CHECK(exchanges[0].max_tokens == 3);
  CHECK(exchanges[0].sampling.temperature == 0.5f);
  CHECK(exchanges[1].path == "/v1/chat/completions");
  CHECK(exchanges[1].max_tokens == 5);
  CHECK(exchanges[1].has_seed);
  CHECK(exchanges[1].sampling.seed == 7);
}

TEST_CASE("import: the shipped samples come in whole, and twice as the same bytes", "[convert]") {
  for (const std::string_view sample : {mooncake_sample(), azure_sample()}) {
    const TempFolder folder;
    const ImportResult result = import_text(folder, sample);
    CHECK(result.bad_lines == 0);
    CHECK(result.requests > 100);
    CHECK(exchanges_of(folder / "out.rdt").size() == result.requests);
    const auto first = test::read_bytes(folder / "out.rdt");
    import_text(folder, sample);
    CHECK(test::read_bytes(folder / "out.rdt") == first);
  }
}

TEST_CASE("import: a line that cannot be read is named, or left out and counted", "[convert]") {
  const std::string bad = std::string(kOpenAi) + "not json\n";
  const Error e = error_of(bad);
  CHECK(e.code() == ErrorCode::corrupt);
  CHECK((e.message() + e.context()).find("line 3") != std::string::npos);
  const TempFolder folder;
  ImportOptions options;
  options.skip_bad = true;
  const ImportResult result = import_text(folder, bad, options);
  CHECK(result.requests == 2);
  CHECK(result.bad_lines == 1);
  REQUIRE(result.first_bad.size() == 1);
  CHECK(result.first_bad[0].number == 3);
}

TEST_CASE("import: what has no meaning is refused, whatever the format", "[convert]") {
  CHECK(error_of("").code() != ErrorCode::environment);
  CHECK(error_of("\x00\x01\x02 garbage\n").code() != ErrorCode::environment);
  CHECK(error_of(R"({"prompt":"a","max_tokens":-5})"
                 "\n")
            .code() == ErrorCode::corrupt);
  CHECK(error_of(R"({"prompt":"a","max_tokens":4294967296000})"
                 "\n")
            .code() == ErrorCode::corrupt);
  CHECK(error_of("{\"prompt\":\"\xff\xfe\"}\n").code() == ErrorCode::corrupt);
  CHECK(error_of(R"({"prompt":5})"
                 "\n")
            .code() == ErrorCode::corrupt);
  CHECK(error_of("{\"prompt\":\"a\"", ImportFormat::openai).code() == ErrorCode::corrupt);
  CHECK(error_of(R"({"timestamp":0,"input_length":4000000000,"output_length":1,"hash_ids":[]})"
                 "\n",
                 ImportFormat::mooncake)
            .code() != ErrorCode::environment);
  CHECK(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\nnever,1,1\n", ImportFormat::azure)
            .code() == ErrorCode::corrupt);
  const std::string long_line = "{\"prompt\":\"" + std::string(size_t{40} << 20, 'a') + "\"}\n";
  CHECK(error_of(long_line).code() != ErrorCode::environment);
}

TEST_CASE("import: an existing trace is left alone", "[convert]") {
  const TempFolder folder;
  import_text(folder, kOpenAi);
  const auto before = test::read_bytes(folder / "out.rdt");
  CHECK_THROWS_AS(import_requests(folder / "in.txt", folder / "out.rdt", {}), Error);
  CHECK(test::read_bytes(folder / "out.rdt") == before);
  CHECK_THROWS_AS(import_requests(folder / "none", folder / "o.rdt", {}), Error);
}

TEST_CASE("import: imported requests are a workload", "[convert]") {
  const TempFolder folder;
  import_text(folder, kOpenAi);
  const auto rows = load_rows(WorkloadKind::requests, folder / "out.rdt");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].output_tokens == 3);
  CHECK(rows[1].output_tokens == 5);
  CHECK_THROWS_AS(load_rows(WorkloadKind::requests), Error);
}

}  // namespace redecode
