#include "traces/wrap.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace redecode {
namespace {

TEST_CASE("a text is wrapped under itself") {
  const std::string word(30, 'x');
  const std::string text = wrapped_entry("label", 8, word + " " + word + " " + word + " end");
  CHECK(text == "label   " + word + " " + word + " " + word + "\n        end\n");
}

TEST_CASE("a word longer than a line stands alone, whole") {
  const std::string word(2 * kReportColumns, 'x');
  CHECK(wrapped_entry("", 4, "a " + word + " b") == "    a\n    " + word + "\n    b\n");
}

TEST_CASE("a label longer than its column keeps one space") {
  CHECK(wrapped_entry("longer", 3, "text") == "longer text\n");
  CHECK(wrapped_entry("empty", 8, "") == "empty\n");
}

}  // namespace
}  // namespace redecode
