// The commands that make traces of traces, as a user runs them.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_binary.h"
#include "tests/traces/temp_folder.h"

namespace redecode::test {
namespace {

bool says(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("traces made of traces verify and replay") {
  const Samples& s = samples();
  const auto run = [&](const Words& arguments, int code) {
    const Outcome outcome = run_binary(arguments);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == code);
    return outcome.out;
  };
  const std::string whole = s.file("whole.rdt"), part = s.file("part.rdt");
  CHECK(says(run({"trace", "recover", s.trace, "-o", whole}, 0), "recovered "));
  CHECK(says(run({"trace", "cut", s.trace, "--steps", "2..9", "-o", part}, 0), "8 steps"));
  CHECK(says(run({"trace", "redact", s.trace, "-o", s.file("red.rdt")}, 0), ": 0 left"));
  CHECK(
      says(run({"trace", "merge", s.trace, whole, "-o", s.file("merged.rdt")}, 0), "in two parts"));
  for (const std::string& file : {whole, part, s.file("red.rdt"), s.file("merged.rdt")})
    run({"trace", "verify", file}, 0);
  run({"replay", part, "-o", s.file("part.rdr")}, 0);

  auto bytes = read_bytes(s.trace);
  bytes[bytes.size() * 3 / 4] ^= 16;
  write_bytes(s.file("hurt.rdt"), bytes);
  const std::string lost =
      run({"trace", "recover", s.file("hurt.rdt"), "-o", s.file("healed.rdt")}, 1);
  CHECK(says(lost, "damaged: "));
  run({"trace", "verify", s.file("healed.rdt")}, 0);
}

TEST_CASE("what these commands refuse") {
  const Samples& s = samples();
  const auto refuses = [&](const Words& arguments, int code, const char* what) {
    const Outcome outcome = run_binary(arguments);
    INFO(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.err.starts_with("redecode: "));
    CHECK(says(outcome.err, what));
  };
  const std::string out = s.file("never.rdt");
  for (const char* verb : {"recover", "cut", "redact", "merge"}) {
    refuses({"trace", verb, s.file("nowhere.rdt"), "-o", out}, 3, "nowhere.rdt");
    refuses({"trace", verb, s.trace}, 2, "output");
    refuses({"trace", verb, s.trace, "-o", s.trace, "--force"}, 2, "same file");
    refuses({"trace", verb, s.golden, "-o", out, "--force"}, 2, "run");
    refuses({"trace", verb, s.trace, "-o", s.file("no/such/folder.rdt")}, 3, "no such folder");
  }
  refuses({"trace", "cut", s.trace, "--steps", "9..2", "-o", out, "--force"}, 2, "9");
  refuses({"trace", "cut", s.trace, "--steps", "99999..", "-o", out, "--force"}, 2, "nothing");
  refuses({"trace", "cut", s.trace, "--time", "1s..2s", "-o", out, "--force"}, 2, "times");
  refuses({"trace", "cut", s.trace, "--time", "soon", "-o", out, "--force"}, 2, "--time");
}

}  // namespace redecode::test
