// Each rule can fail: a wrong sample is found, a right one is not.
#include <catch2/catch_test_macros.hpp>

#include "tests/tree/rules.h"

namespace redecode::tree {
namespace {

std::string lines(size_t count, const std::string& line = "  f();\n") {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += line;
  return out;
}

}  // namespace

TEST_CASE("arrows: wrong includes are found") {
  const auto offences = [](std::string path, std::string text) {
    return check_includes({std::move(path), std::move(text)}).size();
  };
  CHECK(offences("traces/a.cpp", "#include \"traces/step.h\"\n#include <vector>\n") == 0);
  CHECK(offences("traces/a.cpp", "#include \"engine/plan/hazards.h\"\n") == 1);
  CHECK(offences("compare/a.h", "#include \"engine/plan/hazards.h\"\n") == 1);
  CHECK(offences("recorder/a.h", "#include \"compare/ulp.h\"\n") == 1);
  CHECK(offences("engine/device/a.h", "#include \"engine/device/sim/sim_device.h\"\n") == 1);
  CHECK(offences("engine/device/sim/a.h", "#include \"engine/kernels/exec.h\"\n") == 0);
  CHECK(offences("engine/kernels/a.h", "#  include \"engine/plan/hazards.h\"\n") == 1);
  CHECK(offences("engine/batcher/a.h", "#include \"engine/plan/hazards.h\"\n") == 1);
  CHECK(offences("engine/decoder/a.h", "#include \"engine/batcher/live.h\"\n") == 0);
  CHECK(offences("replayer/a.h", "#include \"compare/ulp.h\"\n") == 1);
  CHECK(offences("replayer/a.h", "#include \"engine/decoder/decoder.h\"\n") == 0);
  CHECK(offences("bisect/a.h", "#include \"compare/ulp.h\"\n") == 0);
  CHECK(offences("cli/a.cpp", "#include \"compare/ulp.h\"\n") == 0);
  CHECK(offences("traces/a.cpp", "#include \"step.h\"\n") == 1);
  CHECK(offences("elsewhere/a.cpp", "") == 1);
}

TEST_CASE("Cap'n Proto outside traces is found") {
  const std::vector<SourceFile> right = {
      {"traces/codec.h", "#include <capnp/message.h>\n"},
      {"traces/encode.h", "#include \"traces/codec.h\"\n"},
      {"traces/encode.cpp", "#include \"traces/encode.h\"\n#include <kj/io.h>\n"},
      {"tests/traces/a.cpp", "#include \"traces/codec.h\"\n"},
      {"cli/a.cpp", "#include \"traces/step.h\"\n"}};
  CHECK(check_capnp_is_private(right).empty());
  for (const std::string include :
       {"<capnp/message.h>", "<kj/io.h>", "\"traces/schema/run.capnp.h\"", "\"traces/encode.h\""}) {
    auto wrong = right;
    wrong.push_back({"replayer/a.h", "#include " + include + "\n"});
    CHECK(check_capnp_is_private(wrong).size() == 1);
  }
}

TEST_CASE("lengths: long files, functions and lines are found") {
  CHECK(check_file_length({"traces/a.cpp", lines(600)}).empty());
  CHECK(check_file_length({"traces/a.cpp", lines(601)}).size() == 1);
  CHECK(check_file_length({"traces/a.capnp", lines(601)}).size() == 1);
  CHECK(check_file_length({"docs/a.md", lines(601)}).empty());

  const auto function = [](size_t body) { return "void g() {\n" + lines(body) + "}\n"; };
  CHECK(check_function_length({"cli/a.cpp", function(68)}).empty());
  CHECK(check_function_length({"cli/a.cpp", function(69)}) ==
        Offences{"cli/a.cpp:1: a function of 71 lines"});
  CHECK(check_function_length({"cli/a.cpp", function(40) + function(40)}).empty());
  CHECK(check_function_length({"cli/a.cpp", "namespace n {\n" + function(68) + "}\n"}).empty());

  CHECK(check_columns({"cli/a.cpp", std::string(100, 'a') + "\n"}).empty());
  CHECK(check_columns({"cli/a.cpp", "\n" + std::string(101, 'a') + "\n"}) ==
        Offences{"cli/a.cpp:2: 101 columns"});
  CHECK(check_columns({"cli/a.cpp", "// " + lines(60, "\u00e9") + "\n"}).empty());
  CHECK(check_columns({"cli/a.cpp", "x = R\"(\n" + std::string(101, 'a') + ")\";\n"}).empty());
}

TEST_CASE("functions are told from what is not one") {
  const auto functions = functions_of(R"sample(
#define LONG(x) \
  f() {
namespace redecode {
struct A {
  int get() const { return 1'000; }
  std::vector<int> list = {1, 2};
};
constexpr int kTable[] = {f(1), 2};
template <class T>
bool operator==(const T& a, const T& b) {
  if (a) { return '{' == '}'; }
  return "{{{" == "}";  // }
}
enum class E : int { a };
})sample");
  REQUIRE(functions.size() == 2);
  CHECK(functions[0].first_line == 6);
  CHECK(functions[0].line_count == 1);
  CHECK(functions[1].first_line == 10);
  CHECK(functions[1].line_count == 5);
}

TEST_CASE("comments and literals are no code") {
  CHECK(code_only("a // b\nc") == "a     \nc");
  CHECK(code_only("a /* b\n */ c") == "a     \n    c");
  CHECK(code_only("f(\"\\\"b\", 'c')") == "f(     ,    )");
  CHECK(code_only("1'000 + b") == "1'000 + b");
}

TEST_CASE("tabs and header openings are found") {
  CHECK(check_tabs({"cli/a.cpp", "  a\n"}).empty());
  CHECK(check_tabs({"cli/a.cpp", "\ta\n"}).size() == 1);
  CHECK(check_tabs({"cmake/a.cmake", "a\tb\n"}).size() == 1);

  const std::string right = "// cli/a.h - shows a sample.\n#pragma once\n";
  CHECK(check_header_opening({"cli/a.h", right}).empty());
  CHECK(check_header_opening({"cli/b.h", right}).size() == 1);
  CHECK(check_header_opening({"cli/a.h", "// cli/a.h - \n#pragma once\n"}).size() == 1);
  CHECK(check_header_opening({"cli/a.h", "// cli/a.h - shows a sample.\n"}).size() == 1);
  CHECK(check_header_opening({"cli/a.h", ""}).size() == 2);
}

TEST_CASE("chance, clocks and addresses are found in what is replayed") {
  const auto offences = [](std::string text, std::string path = "engine/plan/a.cpp") {
    return check_determinism({std::move(path), std::move(text)}).size();
  };
  CHECK(offences("int operand(int a);  // not rand()\nuint64_t x = random_bits(1);\n") == 0);
  CHECK(offences("std::map<std::pair<int*, int>, Node*> a; std::set<int> b;\n") == 0);
  CHECK(offences("int x = std::rand();\n") == 1);
  CHECK(offences("int x = rand();\n", "traces/a.h") == 1);
  CHECK(offences("std::random_device d;\n", "compare/a.cpp") == 1);
  CHECK(offences("#include <random>\n", "replayer/a.cpp") == 1);
  CHECK(offences("std::mt19937 g;\n") == 1);
  CHECK(offences("auto t = std::chrono::system_clock::now();\n") == 1);
  CHECK(offences("auto t = std::chrono::steady_clock::now();\n") == 1);
  CHECK(offences("auto t = std::chrono::steady_clock::now();\n", "replayer/a.cpp") == 0);
  CHECK(offences("auto t = std::time(nullptr);\n") == 1);
  CHECK(offences("#include <unordered_map>\n") >= 1);
  CHECK(offences("std::unordered_set<int> s;\n", "replayer/a.cpp") == 1);
  CHECK(offences("std::map<const Node*, int> m;\n") == 1);
  CHECK(offences("std::set<Node*> m;\n") == 1);
  CHECK(offences("std::function<void()> f;\n", "engine/kernels/a.h") == 1);
  CHECK(offences("std::function<void()> f;\n", "engine/kernels/exec.h") == 0);
  CHECK(offences("std::function<void()> f;\n", "engine/batcher/a.h") == 0);
  CHECK(offences("int x = std::rand();\n", "tests/plan/a.cpp") == 0);
}

TEST_CASE("flags that change the arithmetic are found") {
  CHECK(check_exact_flags({"CMakeLists.txt", "add_compile_options(-ffp-contract=off)\n"}).empty());
  CHECK(check_exact_flags({"CMakeLists.txt", "add_compile_options(-ffast-math)\n"}).size() == 1);
  CHECK(check_exact_flags({"CMakePresets.json", "\"-Ofast\"\n"}).size() == 1);
}

TEST_CASE("unfinished places and paths of a machine are found") {
  const std::string slash = "/";
  const auto offences = [](const std::string& text) {
    return check_words({"docs/a.md", text}).size();
  };
  CHECK(offences("a network/path, todo list\n") == 0);
  CHECK(offences("// TO" + std::string("DO: later\n")) == 1);
  CHECK(offences("// FIX" + std::string("ME\n")) == 1);
  CHECK(offences("cd " + slash + "work/main\n") == 1);
  CHECK(offences("cd " + slash + "tmp/a\n") == 1);
  CHECK(offences("see pypi" + std::string(".org\n")) == 1);
}

TEST_CASE("a test name that looks like an option is found") {
  const std::string dash = "-";
  CHECK(check_test_names({"tests/a.cpp", "TEST_CASE(\"" + dash + "-json works\") {}\n"}).size() ==
        1);
  CHECK(check_test_names({"tests/a.cpp", "TEST_CASE(\"json works\") {}\n"}).empty());
}

TEST_CASE("a function that asks for the fault of the demo is found") {
  const auto offences = [](std::string path, const std::string& body) {
    return check_fault_is_not_asked_for(
               {std::move(path), "bool f(const Mode& m) {\n" + body + "}\n"})
        .size();
  };
  const std::string key = "  if (m.index_key == IndexKeyType::bf16) return g(m);\n";
  CHECK(offences("engine/plan/a.cpp", key) == 0);
  CHECK(offences("engine/plan/a.cpp", key + "  return m.capture == CaptureMode::graph;\n") == 1);
  CHECK(offences("replayer/a.cpp", key + "  return m.streams == StreamMode::multi;\n") == 1);
  CHECK(offences("cli/a.cpp", key + "  return m.streams == StreamMode::multi;\n") == 1);
  CHECK(
      offences("engine/plan/a.cpp",
               "  return m.index_key != IndexKeyType::fp8 && m.capture != CaptureMode::eager;\n") ==
      1);
  CHECK(offences("tests/engine/a.cpp", key + "  m.capture = CaptureMode::graph;\n") == 0);
  CHECK(offences("cli/a.cpp", key + "}\nbool h(const Mode& m) {\n" +
                                  "  return m.streams == StreamMode::multi;\n") == 0);
}

}  // namespace redecode::tree
