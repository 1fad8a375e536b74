#include <catch2/catch_test_macros.hpp>

#include "tests/traces/temp_folder.h"
#include "traces/error.h"
#include "traces/import_azure.h"
#include "traces/import_mooncake.h"
#include "traces/limits.h"
#include "traces/samples.h"

namespace redecode {
namespace {

template <class Act>
std::string complaint(Act&& act) {
  try {
    act();
  } catch (const Error& e) {
    return std::string(error_name(e.code())) + ": " + e.what();
  }
  return "none";
}

std::string mooncake(const std::string& text) {
  return complaint([&] { parse_mooncake(text, "m"); });
}

std::string azure(const std::string& rows) {
  return complaint([&] { parse_azure("TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + rows, "a"); });
}

std::string file_text(const std::string& name) {
  const auto bytes =
      test::read_bytes(std::filesystem::path(REDECODE_SOURCE_DIR) / "traces" / "data" / name);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("the Mooncake sample comes with the program and parses") {
  CHECK(mooncake_sample() == file_text("mooncake_conversation.jsonl"));
  const auto rows = parse_mooncake(mooncake_sample(), "sample");
  REQUIRE(rows.size() == 300);
  CHECK(rows[0].input_length == 6758);
  CHECK(rows[0].output_length == 500);
  CHECK(rows[1].hash_ids ==
        std::vector<uint32_t>{0, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27});
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].hash_ids.size() == (rows[i].input_length + 511) / 512);
    if (i > 0) CHECK(rows[i].arrival_ms >= rows[i - 1].arrival_ms);
  }
}

TEST_CASE("the Azure sample comes with the program and parses") {
  CHECK(azure_sample() == file_text("azure_llm_2023_conv.csv"));
  const auto rows = parse_azure(azure_sample(), "sample");
  REQUIRE(rows.size() == 500);
  CHECK(rows[0] == AzureRow{0, 374, 44});
  CHECK(rows[1] == AzureRow{43145790, 396, 109});
  CHECK(rows[2] == AzureRow{45418770, 879, 55});
}

TEST_CASE("Mooncake rows: what is optional, what is ignored") {
  const auto rows = parse_mooncake(
      "\r\n{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 2, \"type\": {\"x\": []}}\r\n"
      "  \n{\"output_length\": 4, \"hash_ids\": [4294967295], \"timestamp\": 9007199254740992,"
      "\"input_length\": 3}",
      "m");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == MooncakeRow{5, 1, 2, {}});
  CHECK(rows[1] == MooncakeRow{uint64_t{1} << 53, 3, 4, {UINT32_MAX}});
  CHECK(parse_mooncake("", "m").empty());
}

TEST_CASE("malformed Mooncake rows are refused with line and byte") {
  const std::string good = R"({"timestamp":0,"input_length":1,"output_length":1})";
  CHECK(mooncake(good + "\n{\"timestamp\":0}\n").starts_with("corrupt: m: line 2, byte 51: "));
  CHECK(mooncake("[1]").starts_with("corrupt"));
  CHECK(mooncake("{").starts_with("corrupt: m: line 1, byte 0: not JSON"));
  CHECK(mooncake(good + " x").starts_with("corrupt"));
  CHECK(mooncake(R"({"timestamp":-1,"input_length":1,"output_length":1})").starts_with("corrupt"));
  CHECK(mooncake(R"({"timestamp":0.5,"input_length":1,"output_length":1})").starts_with("corrupt"));
  CHECK(mooncake(R"({"timestamp":"0","input_length":1,"output_length":1})").starts_with("corrupt"));
  CHECK(mooncake(R"({"timestamp":0,"input_length":1e9,"output_length":1})").starts_with("limit"));
  CHECK(mooncake(R"({"timestamp":1e400,"input_length":1,"output_length":1})") != "none");
  CHECK(mooncake(R"({"timestamp":0,"timestamp":0,"input_length":1,"output_length":1})")
            .find("twice") != std::string::npos);
  CHECK(mooncake(R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":7})")
            .starts_with("corrupt"));
  CHECK(mooncake(std::string(1000, '[')).starts_with("corrupt"));
  CHECK(mooncake(std::string(limits::kImportLineBytes + 1, ' ')).starts_with("limit"));
  std::string many = R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[0)";
  for (uint64_t i = 0; i < limits::kImportHashIds; ++i) many += ",0";
  CHECK(mooncake(many + "]}").starts_with("limit"));
}

TEST_CASE("Azure rows: line ends, fractions, calendar") {
  const auto rows = parse_azure(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59.9999999,0,1\n"
      "2024-01-01 00:00:00,2,3\r\n2024-02-29 00:00:00.5,4,5\r\n2024-03-01 00:00:00.25,6,7",
      "a");
  REQUIRE(rows.size() == 4);
  constexpr uint64_t kDay = uint64_t{24} * 3600 * 10'000'000;
  CHECK(rows[1].arrival_100ns == 1);
  CHECK(rows[2].arrival_100ns == 59 * kDay + 5'000'001);
  CHECK(rows[3].arrival_100ns == 60 * kDay + 2'500'001);
}

TEST_CASE("malformed Azure rows are refused with line and byte") {
  CHECK(complaint([] { parse_azure("", "a"); }).starts_with("corrupt"));
  CHECK(complaint([] { parse_azure("TIMESTAMP,Context\n", "a"); }).starts_with("corrupt"));
  CHECK(azure("2023-11-16 18:15:46.6,1") ==
        "corrupt: a: line 2, byte 41: line does not have three fields");
  CHECK(azure("2023-11-16 18:15:46.6,1,2,3") != "none");
  CHECK(azure("2023-11-16 18:15:46.6,-1,2").starts_with("corrupt: a: line 2, byte 63"));
  CHECK(azure("2023-11-16 18:15:46.6,1,") != "none");
  CHECK(azure("2023-11-16 18:15:46.6,1,99999999999999999999") != "none");
  CHECK(azure("2023-11-16 18:15:46.12345678,1,2") != "none");
  CHECK(azure("2023-11-16 18:15:46.,1,2") != "none");
  CHECK(azure("2023-02-29 18:15:46,1,2") != "none");
  CHECK(azure("2023-13-01 18:15:46,1,2") != "none");
  CHECK(azure("2023-11-16T18:15:46,1,2") != "none");
  CHECK(azure("2023-11-16 18:15:46,1,2\n2023-11-16 18:15:45,1,2").find("before the first") !=
        std::string::npos);
}

TEST_CASE("importers read files and name them") {
  const test::TempFolder folder;
  const std::string text = R"({"timestamp":0,"input_length":1,"output_length":1})";
  test::write_bytes(folder / "m.jsonl", std::vector<uint8_t>(text.begin(), text.end()));
  CHECK(import_mooncake(folder / "m.jsonl").size() == 1);
  CHECK(complaint([&] { import_azure(folder / "m.jsonl"); }).find("m.jsonl: line 1") !=
        std::string::npos);
  CHECK(complaint([&] { import_azure(folder / "none"); }).starts_with("missing"));
}

}  // namespace redecode
