#include "traces/edit/redact.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/inspect.h"
#include "traces/random.h"

namespace redecode {
namespace {

Exchange secret_exchange() {
  Exchange e;
  e.path = "/v1/completions";
  e.prompt = "\"the launch code is 31337\"";
  e.prompt_bytes = e.prompt.size();
  e.stop = {"secret stop"};
  e.choices = {{"secret answer", 13, "stop"}};
  e.block_hashes = {1, 2, 3};
  return e;
}

void write_trace(const std::filesystem::path& path) {
  RandomSequence random(4);
  TraceHeader header = test::sample_trace_header();
  TraceWriter writer(path, header, {.chunk_steps = 16});
  test::StepMaker maker(header, 8);
  for (int i = 0; i < 50; ++i) {
    const Step step = maker.next();
    writer.write(step);
    StepOutput output = test::arbitrary_output(random, step.index);
    writer.write(output);
  }
  Event event;
  event.text = "user alice";
  writer.write(event);
  writer.write(secret_exchange());
  writer.close();
}

bool holds(const std::vector<uint8_t>& bytes, const std::string& text) {
  return std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) != bytes.end();
}

}  // namespace

TEST_CASE("a redacted trace holds no words and is still a trace") {
  const test::TempFolder folder;
  write_trace(folder / "t.rdt");
  CHECK_FALSE(prove_redacted(folder / "t.rdt").holds());
  const RedactResult result = redact(folder / "t.rdt", folder / "r.rdt", false);
  CHECK(result.steps == 50);
  CHECK(result.exchanges == 1);
  CHECK(result.text_bytes > 40);
  const RedactionProof proof = prove_redacted(folder / "r.rdt");
  CHECK(proof.holds());
  CHECK(proof.values > result.tokens);
  const Trace before = load_trace(folder / "t.rdt"), after = load_trace(folder / "r.rdt");
  REQUIRE(after.steps.size() == before.steps.size());
  for (size_t i = 0; i < after.steps.size(); ++i) {
    Step expected = before.steps[i];
    for (Row& row : expected.rows) row.token = 0;
    CHECK(after.steps[i] == expected);
  }
  CHECK(after.header.redaction == Redaction::lengths);
  CHECK(after.exchanges[0].prompt_bytes == before.exchanges[0].prompt_bytes);
  CHECK(verify_file(folder / "r.rdt").sound);
  // In the bytes too: nothing of it in the decompressed file.
  const std::string raw = (folder / "raw").string();
  if (std::system(("zstd -dcq " + (folder / "r.rdt").string() + " > " + raw).c_str()) == 0)
    for (const char* word : {"launch code", "secret", "alice"})
      CHECK_FALSE(holds(test::read_bytes(raw), word));
}

TEST_CASE("the proof finds what a redaction forgot") {
  const test::TempFolder folder;
  write_trace(folder / "t.rdt");
  redact(folder / "t.rdt", folder / "r.rdt", false);
  Trace trace = load_trace(folder / "r.rdt");
  const auto leaks = [&](const auto& write) {
    TraceHeader header = trace.header;
    TraceWriter writer(folder / "leak.rdt", header, {}, true);
    write(writer);
    writer.close();
    return prove_redacted(folder / "leak.rdt").left.size();
  };
  CHECK(leaks([&](TraceWriter& w) { w.write(trace.steps[0]); }) == 0);
  Step step = trace.steps[0];
  step.rows.back().token = 3;
  CHECK(leaks([&](TraceWriter& w) { w.write(step); }) == 1);
  CHECK(leaks([&](TraceWriter& w) { w.write(secret_exchange()); }) == 4);
  Event event;
  event.text = "x";
  CHECK(leaks([&](TraceWriter& w) { w.write(event); }) == 1);
  StepOutput output;
  output.rows.resize(1);
  output.rows[0].token = 5;
  CHECK(leaks([&](TraceWriter& w) { w.write(output); }) == 1);
}

}  // namespace redecode
