#include <capnp/compat/json.h>
#include <capnp/message.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/inspect.h"
#include "traces/run_file.h"

namespace redecode {
namespace {

bool is_json(const std::string& text) {
  try {
    capnp::MallocMessageBuilder message;
    capnp::JsonCodec().decodeRaw(kj::arrayPtr(text.data(), text.size()),
                                 message.initRoot<capnp::JsonValue>());
    return true;
  } catch (const kj::Exception&) {
    return false;
  }
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

std::filesystem::path write_trace(const test::TempFolder& folder, bool spoil = false) {
  const auto path = folder / "t.rdt";
  const TraceHeader header = test::sample_trace_header();
  test::StepMaker maker(header, 5);
  WriterOptions options;
  options.chunk_steps = 16;
  TraceWriter writer(path, header, options, true);
  for (int i = 0; i < 64; ++i) {
    Step step = maker.next();
    if (spoil && i == 40) step.rows[0].token = -5;
    writer.write(step);
    StepOutput output;
    output.step = step.index;
    writer.write(output);
  }
  writer.close();
  return path;
}

std::filesystem::path write_run(const test::TempFolder& folder) {
  const auto path = folder / "r.rdr";
  RandomSequence random(1);
  RunWriter writer(path, test::sample_run_header());
  for (StepIndex i = 0; i < 10; ++i) {
    writer.write(test::arbitrary_output(random, i));
    Finding finding = test::arbitrary_finding(random);
    finding.step = i;
    finding.kind = FindingKind::race;
    writer.write(finding);
  }
  writer.close();
  return path;
}

}  // namespace

TEST_CASE("info counts what is in a trace") {
  const test::TempFolder folder;
  const FileInfo info = inspect_file(write_trace(folder));
  CHECK(info.summary.steps == 64);
  CHECK(info.summary.outputs == 64);
  CHECK(info.summary.chunks == 8);  // header, schema, five of steps, end
  CHECK(info.last_step == 63);
  CHECK(info.steps_by_phase[0] + info.steps_by_phase[1] == 64);
  CHECK(info.requests == info.steps_by_phase[0]);
  const std::string text = to_text(info);
  has(text, "kind          trace\n");
  has(text, "end           clean\n");
  has(text, "64, 0 to 63 (");
  const std::string json = to_json(info);
  CHECK(is_json(json));
  has(json, "\"steps\":64");
  has(json, "\"weights_digest\":\"fedcba9876543210\"");
}

TEST_CASE("info counts what is in a run") {
  const test::TempFolder folder;
  const FileInfo info = inspect_file(write_run(folder));
  CHECK(info.kind == FileKind::run);
  CHECK(info.summary.findings == 10);
  has(to_text(info), "findings      10 (10 race)\n");
  CHECK(is_json(to_json(info)));
}

TEST_CASE("dump shows a range of steps, up to a limit") {
  const test::TempFolder folder;
  const auto path = write_trace(folder);
  DumpOptions options;
  options.first = 10;
  options.last = 12;
  const std::string text = dump_file(path, options);
  CHECK(std::count(text.begin(), text.end(), '\n') == 6);
  CHECK(text.starts_with("step 10 "));
  has(text, "\noutput 12\n");
  options.limit = 2;
  has(dump_file(path, options), "... more; shown are 2 records\n");
  options.json = true;
  const std::string json = dump_file(path, options);
  CHECK(is_json(json));
  has(json, "\"more\":true}");
  options.first = 13;
  CHECK_THROWS_AS(dump_file(path, options), Error);
}

TEST_CASE("dump of arbitrary values is JSON whatever is in them") {
  const test::TempFolder folder;
  DumpOptions options;
  options.json = true;
  const auto path = write_run(folder);
  CHECK(is_json(dump_file(path, options)));
  options.json = false;
  has(dump_file(path, options), "race at step 0");
}

TEST_CASE("verify tells sound, cut, damaged and invalid apart") {
  const test::TempFolder folder;
  const auto path = write_trace(folder);
  VerifyResult result = verify_file(path);
  CHECK(result.sound);
  has(to_text(result), "t.rdt: sound\n");
  CHECK(is_json(to_json(result)));

  auto bytes = test::read_bytes(path);
  test::write_bytes(path, std::span(bytes).first(bytes.size() - 300));
  result = verify_file(path);
  CHECK(result.sound);
  CHECK(result.info.summary.end == FileEnd::cut);
  has(to_text(result), "sound up to a cut end");

  bytes[bytes.size() * 3 / 4] ^= 4;
  test::write_bytes(path, bytes);
  result = verify_file(path);
  CHECK_FALSE(result.sound);
  CHECK(result.info.summary.steps > 0);
  CHECK(result.info.summary.steps < 64);
  has(to_text(result), "t.rdt: corrupt: ");
  has(to_text(result), "where         ");
  has(to_json(result), "\"sound\":false");

  result = verify_file(write_trace(folder, true));
  CHECK_FALSE(result.sound);
  has(result.fault, "row 0: token -5");
  has(result.where, "step 40");
  CHECK_THROWS_AS(verify_file(folder / "none.rdt"), Error);
}

}  // namespace redecode
