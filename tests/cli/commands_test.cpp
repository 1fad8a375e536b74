// What commands do when they are asked rightly.
#include <signal.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/cli/run_binary.h"
#include "tests/traces/temp_folder.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode::test {
namespace {

const Words kGraph = {"--streams", "multi", "--capture", "graph"};

std::string digest_of(const Words& arguments, const Words& environment = {}) {
  const Outcome outcome = run_binary(with(arguments, {"--json"}), environment);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string digest = json_member(outcome.out, "digest");
  REQUIRE(digest.size() == 16);
  return digest;
}

}  // namespace

TEST_CASE("record, replay as a graph on many streams, compare: identical") {
  const Samples& s = samples();
  const std::string run = s.file("graph.rdr");
  const Outcome replayed =
      run_binary(with(with({"replay", s.trace, "-o", run}, kGraph), {"--order", "seed:7"}));
  INFO(replayed.out << replayed.err);
  REQUIRE(replayed.code == 0);
  CHECK(replayed.out.find("findings      none") != std::string::npos);
  CHECK(replayed.out.find(" 0 from a graph") == std::string::npos);
  const Outcome compared = run_binary({"compare", s.golden, run, "--trace", s.trace});
  INFO(compared.out << compared.err);
  CHECK(compared.code == 0);
  CHECK(compared.err.empty());
}

TEST_CASE("a defect is a finding: in the replay, in the check, and in the run file") {
  const Samples& s = samples();
  const std::string run = s.file("defect.rdr");
  const Words defect = with(kGraph, {"--inject", "early-free"});
  const Outcome replayed = run_binary(with({"replay", s.trace, "-o", run}, defect));
  INFO(replayed.out << replayed.err);
  CHECK(replayed.code == 1);
  CHECK(replayed.out.find("index_q") != std::string::npos);
  const Outcome checked = run_binary(with({"check", s.trace}, defect));
  INFO(checked.out << checked.err);
  CHECK(checked.code == 1);
  CHECK(checked.out.find("index_q") != std::string::npos);
  CHECK(run_binary(with({"check", s.trace}, kGraph)).code == 0);

  RunReader reader{std::filesystem::path(run)};
  uint64_t findings = 0;
  for (RunRecord record; reader.next(record);) findings += record.finding.has_value() ? 1 : 0;
  CHECK(findings > 0);
  CHECK(reader.header().mode.inject == std::vector<std::string>{"early-free"});
}

TEST_CASE("the check finds what the replay finds, without running") {
  const Samples& s = samples();
  for (const char* defect :
       {"early-free", "dropped-join", "stale-pad-tail", "baked-position", "unwritten-scratch"}) {
    const Words mode = with(kGraph, {"--inject", defect, "--json"});
    const Outcome replayed = run_binary(with({"replay", s.trace}, mode));
    const Outcome checked = run_binary(with({"check", s.trace}, mode));
    INFO(defect << replayed.err << checked.err);
    CHECK(replayed.code == checked.code);
    const auto findings = [](const std::string& json) {
      const size_t at = json.find("\"findings\"");
      return at == std::string::npos ? "none" : json.substr(at);
    };
    CHECK(findings(replayed.out) == findings(checked.out));
  }
}

TEST_CASE("two processes, one thread or two: the same digest") {
  const Words replay = with({"replay", samples().trace}, kGraph);
  const std::string digest = digest_of(replay);
  CHECK(digest_of(replay) == digest);
  CHECK(digest_of(with(replay, {"--threads", "2"})) == digest);
  CHECK(digest_of({"replay", samples().trace, "--no-check"}) == digest);
}

TEST_CASE("a recording repeated is the same trace, byte for byte") {
  const Samples& s = samples();
  const std::string again = s.file("again.rdt");
  REQUIRE(run_binary(small_recording(again)).code == 0);
  CHECK(read_bytes(again) == read_bytes(s.trace));
}

TEST_CASE("a variable says what the flag says, and the flag wins") {
  const Samples& s = samples();
  const auto mode_of = [&](const Words& flags, const Words& environment) {
    const Outcome outcome =
        run_binary(with({"replay", s.trace, "--steps", "0..1", "--json"}, flags), environment);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const size_t at = outcome.out.find("\"mode\"");
    return outcome.out.substr(at, outcome.out.find("\"digest\"") - at);
  };
  const Words variables = {
      "REDECODE_STREAMS=multi", "REDECODE_CAPTURE=graph", "REDECODE_ORDER=seed:3",
      "REDECODE_TOPK=v1",       "REDECODE_FEEDBACK=own",  "REDECODE_PROBE=ops",
      "REDECODE_POISON=on",     "REDECODE_FULL_LOGITS=1", "REDECODE_INDEX_K=fp8",
      "REDECODE_KERNELS=exact", "REDECODE_BACKEND=sim"};
  const Words flags = {"--streams",  "multi",         "--capture",   "graph",
                       "--order",    "seed:3",        "--topk",      "v1",
                       "--feedback", "own",           "--probe",     "ops",
                       "--poison",   "--full-logits", "--index-key", "fp8"};
  const std::string by_flag = mode_of(flags, {});
  CHECK(mode_of({}, variables) == by_flag);
  CHECK(mode_of({}, {}) != by_flag);
  CHECK(mode_of(flags, {"REDECODE_STREAMS=single", "REDECODE_POISON=off"}) == by_flag);
  CHECK(mode_of({"--no-poison"}, {"REDECODE_POISON=on"}) == mode_of({}, {}));
}

TEST_CASE("headers keep the environment, sorted") {
  const std::string path = samples().file("environment.rdt");
  REQUIRE(run_binary(small_recording(path), {"REDECODE_TOPK=v1", "REDECODE_ORDER=fifo"}).code == 0);
  TraceReader reader{std::filesystem::path(path)};
  CHECK(reader.header().environment ==
        std::vector<std::string>{"REDECODE_ORDER=fifo", "REDECODE_TOPK=v1"});
  CHECK(reader.header().mode.topk == TopkVersion::v1);
}

TEST_CASE("every command prints one JSON object with --json, and nothing else") {
  const Samples& s = samples();
  const std::string fresh = s.file("json.rdt");
  for (const Words& arguments :
       std::vector<Words>{small_recording(fresh),
                          {"replay", s.trace},
                          {"replay", s.trace, "--steps", "2..4"},
                          {"compare", s.golden, s.golden, "--trace", s.trace},
                          {"check", s.trace},
                          {"check", "--model", "dsv4-small", "--rows", "4"},
                          {"trace", "info", s.trace},
                          {"trace", "info", s.golden},
                          {"trace", "dump", s.trace, "--limit", "3"},
                          {"trace", "verify", s.trace},
                          {"doctor"}}) {
    const Outcome outcome = run_binary(with(arguments, {"--json"}));
    INFO(arguments[0] << " " << outcome.err << outcome.out);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(is_one_json_object(outcome.out));
  }
}

TEST_CASE("json output keeps to one object when something is wrong, too") {
  const Samples& s = samples();
  const Outcome differing = run_binary({"compare", s.golden, s.other_run, "--json"});
  CHECK(differing.code == 3);
  CHECK(is_one_json_object(differing.out));
  auto bytes = read_bytes(s.trace);
  bytes[bytes.size() / 2] ^= 1;
  const std::string damaged = s.file("damaged.rdt");
  write_bytes(damaged, bytes);
  const Outcome verified = run_binary({"trace", "verify", damaged, "--json"});
  CHECK(verified.code == 3);
  CHECK(is_one_json_object(verified.out));
}

TEST_CASE("every command has help with an example") {
  for (const Words& command : std::vector<Words>{{"record"},
                                                 {"replay"},
                                                 {"compare"},
                                                 {"check"},
                                                 {"trace"},
                                                 {"trace", "info"},
                                                 {"trace", "dump"},
                                                 {"trace", "verify"},
                                                 {"doctor"},
                                                 {"demo"},
                                                 {"stress"},
                                                 {}}) {
    const Outcome outcome = run_binary(with(command, {"--help"}));
    INFO(outcome.out);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("Example:") != std::string::npos);
    CHECK(outcome.err.empty());
  }
  CHECK(run_binary({"--version"}).out.starts_with("redecode "));
}

TEST_CASE("a model of real size is checked without its weights") {
  const Words check = {"check",     "--model", "dsv4-flash", "--rows", "64",
                       "--streams", "multi",   "--capture",  "graph",  "--json"};
  const Outcome right = run_binary(check);
  INFO(right.err);
  CHECK(right.code == 0);
  CHECK(json_member(right.out, "rows") == "64");
  const Outcome wrong = run_binary(with(check, {"--inject", "dropped-join"}));
  CHECK(wrong.code == 1);
  CHECK(wrong.out.find("indexer.topk") != std::string::npos);
}

TEST_CASE("a cut trace is replayed as far as it goes") {
  const Samples& s = samples();
  auto bytes = read_bytes(s.trace);
  REQUIRE(bytes.size() > 8);
  bytes.erase(bytes.end() - 8, bytes.end());
  const std::string cut = s.file("tail.rdt");
  write_bytes(cut, bytes);
  const Outcome outcome = run_binary({"replay", cut});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("cut at byte") != std::string::npos);
  CHECK(run_binary({"trace", "verify", cut}).code == 1);
}

TEST_CASE("a recording that is interrupted leaves a whole trace of what was served") {
  const Samples& s = samples();
  const std::string path = s.file("interrupted.rdt");
  Started recording({"record", "-o", path, "--sessions", "1000000", "--rounds", "4",
                     "--concurrency", "8", "--ctx", "30", "--max-batch", "8", "--json"},
                    {});
  // Steps reach the file in chunks; the first one after the header says that serving has begun.
  const auto grown = [&] {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    return !missing && size > 4096;
  };
  for (int waits = 0; waits < 3000 && !grown(); ++waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(::kill(recording.pid(), SIGINT) == 0);
  const Outcome outcome = recording.finish();
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(json_member(outcome.out, "stopped") == "true");
  CHECK(run_binary({"trace", "verify", path}).code == 0);
  const Trace trace = load_trace(path);
  CHECK(trace.end == FileEnd::clean);
  const uint64_t served = std::stoull(json_member(outcome.out, "steps"));
  CHECK(trace.outputs.size() == served);
  CHECK(trace.steps.size() - served <= 1);  // the last departures have a step without rows
}

}  // namespace redecode::test
