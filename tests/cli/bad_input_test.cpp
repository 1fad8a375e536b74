// Every way of asking wrongly: the exit code, one line on stderr, never a signal.
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cli/run_binary.h"
#include "tests/traces/temp_folder.h"

namespace redecode::test {
namespace {

struct BadInput {
  const char* what;
  Words arguments;
  int code;
  const char* says;  // in the line
  Words environment = {};
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Usage errors of the command line may be followed by where to look.
void check_bad(const BadInput& bad) {
  const Outcome outcome = run_binary(bad.arguments, bad.environment);
  INFO(bad.what << "\nstderr: " << outcome.err);
  CHECK(outcome.signal == 0);
  CHECK(outcome.code == bad.code);
  const auto lines = lines_of(outcome.err);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines[0].starts_with("redecode: "));
  CHECK(lines[0].find(bad.says) != std::string::npos);
  const bool hint = lines.size() == 2 && bad.code == 2 && lines[1].starts_with("Run 'redecode");
  CHECK((lines.size() == 1 || hint));
}

void check_all(const std::vector<BadInput>& table) {
  for (const BadInput& bad : table) {
    DYNAMIC_SECTION(bad.what) { check_bad(bad); }
  }
}

Words record(const Words& more) {
  return with({"record", "-o", samples().file("never.rdt")}, more);
}
Words replay(const Words& more) { return with({"replay", samples().trace}, more); }

// A file made from a good one.
std::string variant(const std::string& from, const std::string& name,
                    const std::function<void(std::vector<uint8_t>&)>& change) {
  auto bytes = read_bytes(from);
  change(bytes);
  const std::string path = samples().file(name);
  write_bytes(path, bytes);
  return path;
}

std::string cut(const std::string& from, size_t size_bytes) {
  return variant(from, "cut-" + std::to_string(size_bytes),
                 [&](auto& bytes) { bytes.resize(size_bytes); });
}

std::string flipped(const std::string& from, size_t at) {
  return variant(from, "flipped-" + std::to_string(at), [&](auto& bytes) { bytes.at(at) ^= 0x10; });
}

}  // namespace

TEST_CASE("a wrong command line is a usage error") {
  check_all({
      {"unknown command", {"frobnicate"}, 2, "frobnicate"},
      {"unknown option", {"doctor", "--frobnicate"}, 2, "--frobnicate"},
      {"two commands", {"doctor", "doctor2"}, 2, "doctor2"},
      {"option without its value", {"record", "-o"}, 2, "output"},
      {"trace without a verb", {"trace"}, 2, "subcommand"},
      {"unknown trace verb", {"trace", "eat", "x"}, 2, "subcommand"},
      {"replay without a trace", {"replay"}, 2, "trace"},
      {"compare with one run", {"compare", "a.rdr"}, 2, "candidate"},
      {"check without anything", {"check"}, 2, "--model"},
      {"surplus positional", {"replay", "a", "b"}, 2, "b"},
      {"text for a number", record({"--sessions", "many"}), 2, "many"},
      {"negative number", record({"--sessions=-3"}), 2, "sessions"},
      {"negative seed", record({"--seed=-1"}), 2, "seed"},
      {"number beyond 32 bits", record({"--rounds", "99999999999"}), 2, "rounds"},
      {"number beyond 64 bits", record({"--seed", "99999999999999999999999"}), 2, "seed"},
      {"no threads", replay({"--threads", "0"}), 2, "threads"},
      {"absurd threads", replay({"--threads", "1000000"}), 2, "threads"},
      {"negative tolerance",
       {"compare", samples().golden, samples().golden, "--max-ulps=-1"},
       2,
       "max-ulps"},
      {"negative limit", {"trace", "dump", samples().trace, "--limit=-1"}, 2, "limit"},
      {"empty word for a command", {""}, 2, "argument"},
  });
}

TEST_CASE("a workload without meaning is a usage error") {
  check_all({
      {"unknown kind", record({"--workload", "tidal"}), 2, "tidal"},
      {"unknown key", record({"--workload", "agent colour=3"}), 2, "colour"},
      {"key twice", record({"--workload", "agent rounds=1 rounds=2"}), 2, "twice"},
      {"empty workload", record({"--workload", ""}), 2, "agent"},
      {"no sessions", record({"--sessions", "0"}), 2, "sessions"},
      {"no rounds", record({"--rounds", "0"}), 2, "rounds"},
      {"no context", record({"--ctx", "0"}), 2, "ctx"},
      {"no tokens", record({"--max-tokens", "0"}), 2, "max_tokens"},
      {"too many sessions", record({"--sessions", "4294967295", "--rounds", "1"}), 2, "sessions"},
      {"sessions times rounds", record({"--sessions", "1000000", "--rounds", "100000"}), 2,
       "32 bit"},
      {"prompts beyond all bounds", record({"--ctx", "4000000000"}), 2, "16,777,216"},
      {"negative temperature", record({"--temperature=-1"}), 2, "temperature"},
      {"temperature that is no number", record({"--temperature", "nan"}), 2, "temperature"},
      {"no requests", record({"--workload", "azure", "--requests", "0"}), 2, "--requests"},
      {"scale that splits blocks", record({"--workload", "mooncake", "--scale", "3"}), 2, "512"},
      {"sessions of arrivals", record({"--workload", "azure", "--sessions", "2"}), 2, "--sessions"},
      {"input of an agent", record({"--input", "x.csv"}), 2, "--input"},
      {"missing input", record({"--workload", "azure", "--input", "nowhere.csv"}), 3,
       "nowhere.csv"},
      {"input of another kind", record({"--workload", "mooncake", "--input", samples().trace}), 3,
       "trace.rdt"},
  });
}

TEST_CASE("engine settings without meaning are usage errors") {
  check_all({
      {"unknown model", record({"--model", "gpt"}), 2, "gpt"},
      {"bad model seed", record({"--model", "dsv4-small:seed=x"}), 2, "seed"},
      {"llama2c without a path", record({"--model", "llama2c"}), 2, "path"},
      {"llama2c of a missing file", record({"--model", "llama2c:nowhere.bin"}), 3, "nowhere.bin"},
      {"llama2c of a trace", record({"--model", "llama2c:" + samples().trace}), 3, "trace.rdt"},
      {"model for checking only", record({"--model", "dsv4-flash"}), 2, "checking only"},
      {"bucket 0", record({"--buckets", "0"}), 2, "bucket 0"},
      {"falling buckets", record({"--buckets", "4,2"}), 2, "ascend"},
      {"equal buckets", record({"--buckets", "4,4"}), 2, "ascend"},
      {"bucket above the batch", record({"--max-batch", "4", "--buckets", "8"}), 2, "bucket 8"},
      {"buckets that are words", record({"--buckets", "a,b"}), 2, "buckets"},
      {"page size 0", record({"--page-size", "0"}), 2, "--page-size"},
      {"page size no multiple", record({"--page-size", "100"}), 2, "multiple"},
      {"huge page size", record({"--page-size", "4000000000"}), 2, "page size"},
      {"one page", record({"--page-count", "1"}), 2, "page count"},
      {"no page", record({"--page-count", "0"}), 2, "--page-count"},
      {"huge page count", record({"--page-count", "4000000000"}), 2, "page count"},
      {"more pages than memory", record({"--page-count", "4000000"}), 4, "GiB"},
      {"batch 0", record({"--max-batch", "0"}), 2, "--max-batch"},
      {"huge batch", record({"--max-batch", "100000"}), 2, "rows"},
      {"chunk 0", record({"--chunk", "0"}), 2, "--chunk"},
      {"check of no rows", {"check", "--model", "dsv4-small", "--rows", "0"}, 2, "--rows"},
      {"check beyond the model",
       {"check", "--model", "dsv4-small", "--context", "900000"},
       2,
       "--context"},
      {"rows for a trace", {"check", samples().trace, "--rows", "4"}, 2, "--rows"},
  });
}

TEST_CASE("a mode that names nothing is a usage error, by flag or by variable") {
  const Words info = replay({});
  check_all({
      {"streams", replay({"--streams", "double"}), 2, "--streams: 'double'"},
      {"capture", replay({"--capture", "film"}), 2, "eager, graph"},
      {"index key", replay({"--index-k", "fp16"}), 2, "bf16, fp8, fp4"},
      {"top-k version", replay({"--topk", "v9"}), 2, "v1, v2"},
      {"feedback", replay({"--feedback", "none"}), 2, "recorded, own"},
      {"probe", replay({"--probe", "all"}), 2, "none, ops, values"},
      {"poison", replay({"--poison=maybe"}), 2, "maybe"},
      {"order kind", replay({"--order", "chaos"}), 2, "chaos"},
      {"empty order", replay({"--order", ""}), 2, "--order"},
      {"order without seed", replay({"--order", "seed:"}), 2, "seed:"},
      {"order with text", replay({"--order", "paced:x"}), 2, "paced:x"},
      {"script grammar", replay({"--order", "script:1/2"}), 2, "script"},
      {"script that falls", replay({"--order", "script:5/0.1;4/0.1"}), 2, "script"},
      {"script that does not fit", replay({"--streams", "multi", "--order", "script:0/0.999"}), 2,
       "999"},
      {"unknown defect", replay({"--inject", "gremlin"}), 2, "gremlin"},
      {"unknown second defect", replay({"--inject", "early-free,gremlin"}), 2, "gremlin"},
      {"defect of another model",
       {"replay", samples().llama_trace, "--inject", "early-free"},
       2,
       "early-free"},
      {"no GPU", replay({"--backend", "cuda"}), 4, "cuda"},
      {"no fast kernels", replay({"--kernels", "fast"}), 4, "fast"},
      {"no GPU to check", {"check", samples().trace, "--backend", "cuda"}, 4, "cuda"},
      {"variable streams", info, 2, "REDECODE_STREAMS: 'two'", {"REDECODE_STREAMS=two"}},
      {"variable order", info, 2, "REDECODE_ORDER", {"REDECODE_ORDER=seed:-"}},
      {"variable defect", info, 2, "REDECODE_INJECT", {"REDECODE_INJECT=x"}},
      {"variable poison", info, 2, "REDECODE_POISON", {"REDECODE_POISON=2"}},
      {"variable backend", info, 4, "cuda", {"REDECODE_BACKEND=cuda"}},
  });
}

TEST_CASE("files that cannot be used are unusable input") {
  const Samples& s = samples();
  const std::string text = s.file("text");
  write_bytes(text, std::vector<uint8_t>(200, 'x'));
  const std::string empty = s.file("empty");
  write_bytes(empty, {});
  const size_t size = read_bytes(s.trace).size();
  check_all({
      {"missing trace", {"replay", s.file("nowhere.rdt")}, 3, "nowhere.rdt"},
      {"missing run", {"compare", s.golden, s.file("nowhere.rdr")}, 3, "nowhere.rdr"},
      {"missing file for info", {"trace", "info", s.file("nowhere")}, 3, "nowhere"},
      {"missing file for check", {"check", s.file("nowhere.rdt")}, 3, "nowhere.rdt"},
      {"folder", {"replay", s.folder}, 3, s.folder.c_str()},
      {"folder for verify", {"trace", "verify", s.folder}, 3, s.folder.c_str()},
      {"empty file", {"replay", empty}, 3, "empty"},
      {"empty file for dump", {"trace", "dump", empty}, 3, "empty"},
      {"text", {"replay", text}, 3, "text"},
      {"text for info", {"trace", "info", text}, 3, "text"},
      {"text for compare", {"compare", text, s.golden}, 3, "text"},
      {"cut after 3 bytes", {"replay", cut(s.trace, 3)}, 3, "cut-3"},
      {"cut after 20 bytes", {"replay", cut(s.trace, 20)}, 3, "cut-20"},
      {"cut in the header record", {"replay", cut(s.trace, 150)}, 3, "cut-150"},
      {"flipped magic", {"replay", flipped(s.trace, 10)}, 3, "flipped-10"},
      {"flipped chunk header", {"replay", flipped(s.trace, 40)}, 3, "flipped-40"},
      {"flipped header record", {"replay", flipped(s.trace, 160)}, 3, "flipped-160"},
      {"flipped record", {"replay", flipped(s.trace, size / 2)}, 3, "flipped-"},
      {"flipped record, verify", {"trace", "verify", flipped(s.trace, size / 2)}, 3, "flipped-"},
      {"flipped record, check", {"check", flipped(s.trace, size / 2)}, 3, "flipped-"},
      {"another version",
       {"replay", variant(s.trace, "version", [](auto& bytes) { bytes[16] = 9; })},
       3,
       "version"},
      {"a run as a trace", {"replay", s.golden}, 2, "golden.rdr"},
      {"a trace as a run", {"compare", s.trace, s.golden}, 2, "trace.rdt"},
      {"a run as a trace to compare with",
       {"compare", s.golden, s.golden, "--trace", s.golden},
       2,
       "golden.rdr"},
      {"a trace cut before its first step", {"replay", cut(s.trace, 800)}, 2, "no steps"},
  });
}

TEST_CASE("traces and models that do not fit are refused") {
  const Samples& s = samples();
  check_all({
      {"another model", replay({"--model", "llama-small"}), 3, "llama-small"},
      {"other weights", replay({"--model", "dsv4-small:seed=2"}), 3, "weights"},
      {"no such model", replay({"--model", "gpt"}), 2, "gpt"},
      {"another model, checked", {"check", s.trace, "--model", "llama-small"}, 3, "llama-small"},
      {"runs of two traces", {"compare", s.golden, s.other_run}, 3, "trace"},
      {"a trace of other runs",
       {"compare", s.golden, s.golden, "--trace", s.other_trace},
       3,
       "trace"},
      {"steps that fall", replay({"--steps", "5..2"}), 2, "--steps"},
      {"steps beyond the end", replay({"--steps", "100000..100001"}), 2, "--steps"},
      {"steps that are text", replay({"--steps", "first..last"}), 2, "--steps"},
      {"negative steps", replay({"--steps=-1..2"}), 2, "--steps"},
      {"no steps at all", replay({"--steps", ".."}), 2, "--steps"},
      {"dump of falling steps", {"trace", "dump", s.trace, "--steps", "9..1"}, 2, "--steps"},
      {"output that exists", replay({"-o", s.golden}), 2, "--force"},
      {"trace that exists", {"record", "-o", s.trace}, 2, "--force"},
      {"output in a missing folder", replay({"-o", s.file("no/run.rdr")}), 3, "no/run.rdr"},
      {"trace in a missing folder",
       {"record", "--sessions", "1", "-o", s.file("no/trace.rdt")},
       3,
       "no/trace.rdt"},
      {"a run on a full disk", replay({"-o", "/dev/full", "--force"}), 4, "/dev/full"},
      {"a trace on a full disk", with(small_recording("/dev/full"), {"--force"}), 4, "/dev/full"},
      {"output that is a folder", replay({"-o", s.folder, "--force"}), 4, s.folder.c_str()},
  });
}

TEST_CASE("a run cut short is incomparable, and one with its steps left out") {
  const Samples& s = samples();
  const std::string part = s.file("part.rdr");
  REQUIRE(run_binary(replay({"--steps", "0..3", "-o", part})).code == 0);
  check_bad({"other steps", {"compare", s.golden, part}, 3, "part.rdr"});
  CHECK(run_binary({"compare", s.golden, part, "--allow-prefix"}).code == 0);
  const std::string broken = cut(s.golden, read_bytes(s.golden).size() - 8);
  check_bad({"no end", {"compare", s.golden, broken}, 3, "cut"});
}

TEST_CASE("without a command the help is shown and nothing is done") {
  const Outcome outcome = run_binary({});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("record") != std::string::npos);
}

}  // namespace redecode::test
