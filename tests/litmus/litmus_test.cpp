#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/checks/explanations.h"
#include "engine/litmus/verdict.h"
#include "traces/error.h"

namespace redecode {
namespace {

namespace fs = std::filesystem;

const fs::path kOwn = fs::path(REDECODE_SOURCE_DIR) / "tests" / "litmus";
const fs::path kZoo = fs::path(REDECODE_SOURCE_DIR).parent_path() / "shared" / "zoo";

std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".litmus") out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string joined(const std::vector<LitmusExpect>& verdicts) {
  std::string out;
  for (const LitmusExpect& v : verdicts) out += to_text(v) + "; ";
  return out;
}

void check_file(const std::string& path) {
  const LitmusReport r = report_litmus(load_litmus(path), path);
  INFO(path << ": found " << joined(r.found) << " expected " << joined(r.expected)
            << " after the fix " << joined(r.fixed_found));
  CHECK(r.found == r.expected);
  CHECK(r.fixed_found.empty());
  for (const Finding& f : r.findings) CHECK(find_explanation(check_of(f)) != nullptr);
}

std::vector<LitmusExpect> found(const std::string& body) {
  const Litmus litmus = parse_litmus("scenario t\n" + body, "t");
  const LitmusProgram p = lower(litmus);
  return verdicts_of(check_litmus(p), p);
}

Error error_of(const std::string& text) {
  try {
    report_litmus(parse_litmus(text, "f.litmus"), "f.litmus");
  } catch (const Error& e) {
    return e;
  }
  FAIL("accepted: " << text);
  return Error(ErrorCode::usage, "");
}

}  // namespace

TEST_CASE("Every file of tests/litmus gives exactly what it expects, and is clean after its fix",
          "[litmus]") {
  const auto files = files_of(kOwn);
  CHECK(files.size() >= 60);
  size_t quiet = 0;
  std::set<std::string> names;
  for (const std::string& file : files) {
    check_file(file);
    const Litmus litmus = load_litmus(file);
    quiet += std::ranges::any_of(
        litmus.expects, [](const LitmusExpect& e) { return e.verdict == LitmusVerdict::quiet; });
    CHECK(names.insert(litmus.name).second);
    CHECK_FALSE(litmus.expects.empty());
  }
  CHECK(quiet >= 20);
}

TEST_CASE("The files of the zoo, where they are there", "[litmus]") {
  if (!fs::is_directory(kZoo)) SKIP("no shared folder beside the project");
  for (const std::string& file : files_of(kZoo)) check_file(file);
}

TEST_CASE("All pairs are reported, and a read that races is reported once", "[litmus]") {
  CHECK(joined(found("persist a @A =v\n1 M k x w=a:1\n2 M k y w=a:2\n3 S k z r=a:1\n")) ==
        "RACE 1,3; RACE 2,3; ");
  // The other row of the same op still has its own verdict.
  CHECK(joined(found("persist a @A =v\n1 M k x w=a[0]:1\n2 S k z r=a[0]:1,a[1]:9\n")) ==
        "RACE 1,2; PROV 2; ");
}

TEST_CASE("A version decides whose content is right, without one the buffer does", "[litmus]") {
  CHECK(found("persist a @R =v\npersist b @R =v\n1 M k x w=a:1\n2 M k y r=b:1\n").empty());
  CHECK(found("persist a @R =v\npersist b @R =v\n1 M k x w=a:1\n2 M k y r=b\n").empty());
  CHECK(joined(found("persist a @R =v\npersist b @R =v\n1 M k x w=a:1\n2 M k y r=b:v\n")) ==
        "PROV 2; ");
  CHECK(joined(found("persist a @R\n1 M k y r=a\n")) == "UNINIT 1; ");
}

TEST_CASE("A file without findings that expects one does not match, and the other way round",
          "[litmus]") {
  const auto matches = [](const std::string& body) {
    return report_litmus(parse_litmus("scenario t\n" + body, "t"), "t").matches();
  };
  CHECK_FALSE(matches("persist a @A =v\n1 M k x r=a:v\n2 M k y r=a:v\nexpect RACE 1,2\n"));
  CHECK_FALSE(matches("persist a @A =v\n1 M k x w=a:1\n2 S k y r=a:1\nexpect QUIET\n"));
  CHECK_FALSE(
      matches("persist a @A =v\n1 M k x w=a:1\n2 S k y r=a:1\nexpect RACE 1,2\nfix + 3 M rec e\n"));
  CHECK(
      matches("persist a @A =v\n1 M k x w=a:1\n2 S k y r=a:1\nexpect RACE 1,2\n"
              "fix + 1.25 M rec e\nfix + 1.75 S wait e\n"));
}

TEST_CASE("Errors name file, line and column, and what is wanted", "[litmus]") {
  const std::string head = "scenario t\npersist a @A =v\n";
  const auto at = [&](const std::string& line, const std::string& where) {
    const Error e = error_of(head + line);
    INFO(line << " -> " << e.message() << " @ " << e.context());
    CHECK(e.code() == ErrorCode::corrupt);
    CHECK(e.context() == where);
  };
  at("1 M jump x\n", "f.litmus:3:5");
  at("1 M k\n", "f.litmus:3:6");
  at("x M k y\n", "f.litmus:3:1");
  at("1.1234567890 M k y\n", "f.litmus:3:2");
  at("1 M k y z=a\n", "f.litmus:3:9");
  at("1 M k y r=\n", "f.litmus:3:11");
  at("1 M k y r=a,\n", "f.litmus:3:13");
  at("1 M k y r=a[0\n", "f.litmus:3:12");
  at("1 M k y r=a[0]x\n", "f.litmus:3:15");
  at("1 M k y r=a r=a\n", "f.litmus:3:13");
  at("1 M alloc b P0\n", "f.litmus:3:13");
  at("1 M sync S\n", "f.litmus:3:10");
  at("1 H k~ y\n", "f.litmus:3:8");
  at("1 M free a b\n", "f.litmus:3:12");
  at("persist a @B\n", "f.litmus:3:11");
  at("persist b\n", "f.litmus:3:10");
  at("persist b @B v\n", "f.litmus:3:14");
  at("scope world\n", "f.litmus:3:7");
  at("scenario u\n", "f.litmus:3:1");
  at("expect MAYBE 1\n", "f.litmus:3:8");
  at("expect RACE 1\n", "f.litmus:3:13");
  at("fix * 1 M k y\n", "f.litmus:3:5");
  at("async H\n", "f.litmus:3:7");
  CHECK(error_of("1 M k x\n").code() == ErrorCode::corrupt);
  CHECK(error_of("").message().find("scenario") != std::string::npos);
  for (const char* line : {"1 M k y r=b\n", "1 M k y r=*p\n", "1 M free b\n", "1 H sync S\n",
                           "1 M k x\n1 M k y\n", "1 M k x\nexpect UAF 2\n", "1 M k x\nfix - 2\n",
                           "1 M k x\nfix + 1 M k y\n", "1 H bake p=b\n"}) {
    INFO(line);
    CHECK(error_of(head + line).code() == ErrorCode::corrupt);
  }
}

TEST_CASE("Limits are checked before anything grows", "[litmus]") {
  std::string big(litmus_limits::kFileBytes + 1, '\n');
  CHECK(error_of(big).code() == ErrorCode::limit);
  std::string streams = "scenario t\n";
  for (int i = 0; i < 17; ++i)
    streams += std::to_string(i + 1) + " S" + std::to_string(i) + " k x\n";
  CHECK(error_of(streams).code() == ErrorCode::limit);
  std::string operands = "scenario t\npersist a @A =v\n1 M k x r=a";
  for (int i = 0; i < 256; ++i) operands += ",a";
  CHECK(error_of(operands + "\n").code() == ErrorCode::limit);
  CHECK(error_of("scenario t\npersist " + std::string(129, 'a') + " @A\n").code() ==
        ErrorCode::corrupt);
}

TEST_CASE("Formatting keeps the program and every comment, and is done once", "[litmus]") {
  const std::string text =
      "# head\n\n\nscenario   t  # why\r\n persist a @A   =v\n10 M   k x  w=a:1# trailing\n"
      "2.5 SIDE k y r=a:1\n\n\n";
  const std::string once = format_litmus(text, "t");
  CHECK(once ==
        "# head\n\nscenario t  # why\npersist a @A =v\n10  M    k x w=a:1  # trailing\n"
        "2.5 SIDE k y r=a:1\n");
  CHECK(format_litmus(once, "t") == once);
  for (const std::string& file : files_of(kOwn)) {
    const std::string formatted = format_litmus(text_of(file), file);
    CHECK(format_litmus(formatted, file) == formatted);
    CHECK(report_litmus(parse_litmus(formatted, file), file).found ==
          report_litmus(load_litmus(file), file).found);
  }
}

TEST_CASE("Ids are decimals, in numeric order", "[litmus]") {
  const Litmus l = parse_litmus("scenario t\n2 M k c\n1.5 M k b\n1.25 M k a\n", "t");
  REQUIRE(l.ops.size() == 3);
  CHECK(l.ops[0].name == "a");
  CHECK(to_text(l.ops[0].id) == "1.25");
  CHECK(to_text(l.ops[2].id) == "2");
  CHECK(to_text(parse_litmus("scenario t\n7.50 M k c\n", "t").ops[0].id) == "7.5");
}

TEST_CASE("Sentences name both ops by id and stream, and what to do", "[litmus]") {
  const LitmusReport r = report_litmus(
      parse_litmus("scenario t\npersist a @A =v\n1 M k x w=a:1\n2 S k y r=a:1\n", "t"), "t");
  REQUIRE(r.sentences.size() == 1);
  CHECK(r.sentences[0] ==
        "`y` (2 on S) reads `a` as `1` while `x` (1 on M) writes `a` as `1`; no edge orders them. "
        "Record an event on M after `x` (1 on M) and let S wait for it before `y` (2 on S).");
}

TEST_CASE("Every check has a page that fits one screen", "[litmus]") {
  CHECK(explanations().size() >= 16);
  for (const Explanation& e : explanations()) {
    INFO(e.name);
    CHECK(e.text.starts_with(std::string(e.name) + ": "));
    CHECK(std::ranges::count(e.text, '\n') <= 45);
  }
}

}  // namespace redecode
