// The rules over the whole tree: a failure lists every offence.
#include <catch2/catch_test_macros.hpp>

#include "tests/tree/rules.h"

namespace redecode::tree {
namespace {

std::string join(const Offences& offences) {
  std::string out;
  for (const std::string& offence : offences) out += offence + "\n";
  return out;
}

void require_everywhere(Offences (*rule)(const SourceFile&)) {
  Offences all;
  for (const SourceFile& file : read_tree(REDECODE_SOURCE_DIR)) {
    const Offences offences = rule(file);
    all.insert(all.end(), offences.begin(), offences.end());
  }
  INFO(join(all));
  REQUIRE(all.empty());
}

}  // namespace

TEST_CASE("the tree is read") {
  const auto files = read_tree(REDECODE_SOURCE_DIR);
  const auto has = [&](std::string_view path) {
    for (const SourceFile& file : files)
      if (file.path == path) return !file.text.empty();
    return false;
  };
  CHECK(has("CMakeLists.txt"));
  CHECK(has("dev"));
  CHECK(has("traces/step.h"));
  CHECK(has("tests/tree/tree_test.cpp"));
  for (const SourceFile& file : files) CHECK_FALSE(in_folder(file.path, "build"));
}

TEST_CASE("includes follow the arrows") { require_everywhere(check_includes); }
TEST_CASE("Cap'n Proto stays inside traces") {
  const Offences offences = check_capnp_is_private(read_tree(REDECODE_SOURCE_DIR));
  INFO(join(offences));
  REQUIRE(offences.empty());
}
TEST_CASE("files are short") { require_everywhere(check_file_length); }
TEST_CASE("functions are short") { require_everywhere(check_function_length); }
TEST_CASE("lines are short") { require_everywhere(check_columns); }
TEST_CASE("there are no tabs") { require_everywhere(check_tabs); }
TEST_CASE("headers open with path and purpose") { require_everywhere(check_header_opening); }
TEST_CASE("what is replayed is deterministic") { require_everywhere(check_determinism); }
TEST_CASE("flags keep the arithmetic") { require_everywhere(check_exact_flags); }
TEST_CASE("nothing is unfinished or tied to a machine") { require_everywhere(check_words); }
TEST_CASE("test names can be passed on") { require_everywhere(check_test_names); }
TEST_CASE("no code asks for the fault of the demo") {
  require_everywhere(check_fault_is_not_asked_for);
}

}  // namespace redecode::tree
