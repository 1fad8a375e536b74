// check, explore and explain as a user runs them.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>

#include "tests/cli/run_binary.h"
#include "tests/traces/temp_folder.h"

namespace redecode::test {
namespace {

const std::string kLitmus = (std::filesystem::path(REDECODE_SOURCE_DIR) / "tests" / "litmus");

bool says(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

Outcome run(const Words& arguments, int code) {
  Outcome outcome = run_binary(arguments);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == code);
  return outcome;
}

std::string write_litmus(const TempFolder& folder, const std::string& body) {
  const std::string text = "scenario t\npersist a @A =v\n" + body;
  const auto path = folder / "t.litmus";
  write_bytes(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return path.string();
}

}  // namespace

TEST_CASE("check: litmus files, alone and as a folder") {
  const TempFolder folder;
  CHECK(says(run({"check", kLitmus}, 0).out, "files give what they expect"));
  const Outcome json = run({"check", kLitmus, "--json"}, 0);
  CHECK(is_one_json_object(json.out));
  CHECK(says(json.out, "\"matched\":"));
  const std::string race = write_litmus(folder, "1 M k x w=a:1\n2 S k y r=a:1\n");
  const Outcome found = run({"check", race}, 1);
  CHECK(says(found.out, "RACE 1,2"));
  CHECK(says(found.out, "no edge orders them"));
  const Outcome one = run({"check", race, "--json"}, 1);
  CHECK(is_one_json_object(one.out));
  CHECK(says(one.out, "\"findings\":[\"RACE 1,2\"],\"expected\":[],\"match\":false"));
  run({"check", write_litmus(folder, "1 M k x w=a:1\n2 S k y r=a:1\nexpect RACE 1,2\n")}, 0);
  CHECK(says(run({"check", write_litmus(folder, "1 M jump x\n")}, 3).err, "t.litmus:3:5"));
  CHECK(says(run({"check", folder / "none.litmus"}, 3).err, "none.litmus"));
  CHECK(run({"check", write_litmus(folder, "1   M  k x   # why\n"), "--format"}, 0).out ==
        "scenario t\npersist a @A =v\n1 M k x  # why\n");
}

TEST_CASE("check: pictures of a litmus file") {
  const TempFolder folder;
  const std::string race = write_litmus(folder, "1 M k x w=a:1\n2 S k y r=a:1\n");
  const std::string svg = folder / "r.svg", timeline = folder / "r.pftrace";
  run({"check", race, "--svg", svg, "--timeline", timeline}, 1);
  CHECK(std::filesystem::file_size(svg) > 500);
  CHECK(std::filesystem::file_size(timeline) > 100);
  run({"check", race, "--svg", svg}, 2);
  run({"check", race, "--svg", svg, "--force"}, 1);
  CHECK(says(
      run({"check", write_litmus(folder, "1 M k x w=a:1\n"), "--svg", folder / "n.svg"}, 2).err,
      "no finding"));
}

TEST_CASE("check: a certificate is the same each time, and can be required") {
  const Words base = {"check", "--model", "dsv4-small", "--rows", "8", "--streams", "multi"};
  const auto with = [&](const Words& more) {
    Words all = base;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string first = run(with({"--certify", "--json"}), 0).out;
  const auto digest_of = [](const std::string& json) {
    const size_t at = json.find("\"digest\":\"", json.find("\"certificate\"")) + 10;
    return json.substr(at, 16);
  };
  const std::string digest = digest_of(first);
  CHECK(digest_of(run(with({"--certify", "--json"}), 0).out) == digest);
  CHECK(says(run(with({"--require", digest}), 0).out, "every conflicting pair is ordered"));
  CHECK(says(run(with({"--require", "0123456789abcdef"}), 1).out, "NOT the required"));
  CHECK(digest_of(run(with({"--certify", "--json", "--capture", "graph"}), 0).out) != digest);
  CHECK(
      says(run(with({"--certify", "--inject", "early-free"}), 1).out, "none: there are findings"));
  CHECK(says(run(with({"--price", "b200"}), 0).out, "us a step predicted on b200"));
  run(with({"--price", "tpu"}), 2);
}

TEST_CASE("explore: a litmus file and a trace come to a witness") {
  const TempFolder folder;
  const std::string race = write_litmus(folder, "1 M k x w=a:1\n2 S k y r=a:1\n");
  const Outcome found = run({"explore", race}, 1);
  CHECK(says(found.out, "before:0/y<x"));
  CHECK(says(found.out, "exhaustive: all 2 classes"));
  CHECK(says(found.out, "+ after `x`: record an event on stream 0"));
  CHECK(is_one_json_object(run({"explore", race, "--json"}, 1).out));
  CHECK(says(run({"explore", write_litmus(folder, "1 M k x w=a:1\n")}, 0).out, "none"));
  const Samples& s = samples();
  const Outcome trace =
      run({"explore", s.trace, "--streams", "multi", "--capture", "graph", "--inject",
           "dropped-join", "--repeats", "3", "--orders", "2", "--json"},
          1);
  CHECK(is_one_json_object(trace.out));
  CHECK(says(trace.out, "\"witness\":\"before:"));
  CHECK(says(trace.out, "\"witness_runs\":{\"tried\":3,\"wrong\":3}"));
  CHECK(says(trace.out, "\"fifo_runs\":{\"tried\":3,\"wrong\":0}"));
  run({"explore", s.file("nowhere.rdt")}, 3);
}

TEST_CASE("explain: every check, and what is none") {
  CHECK(says(run({"explain"}, 0).out, "pool-lifetime"));
  CHECK(says(run({"explain", "pdl"}, 0).out, "griddepcontrol.wait"));
  CHECK(says(run({"explain", "luck"}, 2).err, "there is no such check"));
}

TEST_CASE("replay: orders by name, and what no longer fits") {
  const Samples& s = samples();
  run({"replay", s.trace, "--streams", "multi", "--order", "before:*/wq_b@1<indexer.logits@1",
       "--steps", "0..3", "--quiet"},
      0);
  const Outcome gone = run({"replay", s.trace, "--streams", "multi", "--order",
                            "before:0/no_such_op<wq_b@1", "--steps", "0..3", "--quiet"},
                           2);
  CHECK(says(gone.err, "no longer fits"));
  run({"replay", s.trace, "--order", "pct:1,2", "--steps", "0..3", "--quiet"}, 0);
  run({"replay", s.trace, "--order", "pct:1", "--quiet"}, 2);
  run({"replay", s.trace, "--steps", "0..3", "--self-check", "--canary", "--quiet"}, 0);
}

}  // namespace redecode::test
