#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "traces/crc32c.h"
#include "traces/finding.h"
#include "traces/json_writer.h"
#include "traces/program.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

Finding story() {
  Finding f;
  f.step = 41;
  f.request = 7;
  f.layer = 3;
  f.first = {"indexer.logits", "index_q", 3, 2, 12, 41, Access::read, 5};
  f.second = {"qkv_a", "index_q", 4, 0, 15, 41, Access::write, 6};
  f.size_bytes = 196608;
  f.missing_edge = "indexer.logits (stream 2) -> qkv_a (stream 0)";
  f.advice = "Add a wait after `indexer.logits`, or record_stream its input.";
  return f;
}

}  // namespace

TEST_CASE("a race is one sentence: place, both sides, bytes, advice") {
  CHECK(
      sentence(story()) ==
      "step 41, request 7, layer 3: `indexer.logits` on stream 2 reads 196,608 bytes of `index_q` "
      "that `qkv_a` of layer 4 overwrites on stream 0; no edge orders them. Add a wait after "
      "`indexer.logits`, or record_stream its input.");
}

TEST_CASE("a race leaves out what does not apply and names what differs") {
  Finding f = story();
  f.request = kNoRequest;
  f.second.layer = 3;
  f.second.step = 42;
  f.second.buffer = "q_latent";
  f.advice.clear();
  f.size_bytes = 1;
  CHECK(sentence(f) ==
        "step 41, layer 3: `indexer.logits` on stream 2 reads 1 byte of `index_q` that `qkv_a` in "
        "step 42 overwrites on stream 0 as `q_latent`; no edge orders them. Missing edge: "
        "indexer.logits (stream 2) -> qkv_a (stream 0).");
  f.first.access = Access::write;
  f.second.access = Access::read;
  f.second.buffer = "index_q";
  f.missing_edge.clear();
  CHECK(sentence(f) ==
        "step 41, layer 3: `indexer.logits` on stream 2 writes 1 byte of `index_q` that `qkv_a` in "
        "step 42 reads on stream 0; no edge orders them.");
  f.second.access = Access::update;
  f.second.stream = kHost;
  CHECK(sentence(f).find("also writes on the host;") != std::string::npos);
}

TEST_CASE("every kind of finding has wording of its own") {
  Finding f = story();
  f.advice = "Do this";
  const auto said = [&](FindingKind kind) {
    f.kind = kind;
    return sentence(f).substr(std::string("step 41, request 7, layer 3: ").size());
  };
  CHECK(said(FindingKind::use_after_free) ==
        "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q` after the host freed it; "
        "`qkv_a` of layer 4 on stream 0 holds that memory as `index_q`. Do this.");
  CHECK(said(FindingKind::frozen) ==
        "`indexer.logits` on stream 2 runs with what capture froze into the graph for `index_q`, "
        "not with what this step needs. Do this.");
  CHECK(said(FindingKind::numeric) ==
        "`indexer.logits` on stream 2 sums in an order that follows the batch, so a row's bits "
        "depend on its neighbours. Do this.");
  f.second.buffer = "q_latent";
  CHECK(said(FindingKind::stale) ==
        "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q` that still hold `q_latent`, "
        "as written by `qkv_a` of layer 4 on stream 0. Do this.");
  CHECK(said(FindingKind::foreign) ==
        "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q` in a KV page that is not "
        "request 7's; `qkv_a` of layer 4 on stream 0 works there. Do this.");
  f.second = {};
  CHECK(said(FindingKind::unwritten) ==
        "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q` that nothing has written "
        "since it was allocated. Do this.");
  CHECK(said(FindingKind::stale) ==
        "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q` that still hold another "
        "buffer's content. Do this.");
}

TEST_CASE("finding kinds have names that read back") {
  for (int i = 0; i < 7; ++i) {
    FindingKind back = FindingKind::race;
    REQUIRE(from_text(to_text(static_cast<FindingKind>(i)), back));
    CHECK(back == static_cast<FindingKind>(i));
  }
  FindingKind unchanged = FindingKind::stale;
  CHECK_FALSE(from_text("Race", unchanged));
  CHECK(unchanged == FindingKind::stale);
}

TEST_CASE("a program dumps one line a command") {
  auto names = std::make_shared<NameTable>();
  Program p;
  p.transients = {{names->intern("index_q"), 1, 3, 1024},
                  {names->intern("index_logits"), 1, 3, 256}};
  CHECK(names->intern("index_q") == 0);
  const NameId logits = names->intern("indexer.logits");
  p.names = names;
  p.persistents = std::make_shared<std::vector<PersistentBuffer>>();
  Command allocate;
  allocate.kind = CommandKind::allocate;
  allocate.stream = 3;
  allocate.layer = 1;
  allocate.buffer = BufferId::transient(0);
  Command launch;
  launch.stream = 3;
  launch.name = logits;
  launch.layer = 1;
  launch.region_count = 2;
  Command wait;
  wait.kind = CommandKind::wait;
  wait.stream = kHost;
  wait.name = logits;
  wait.event = 2;
  p.commands = {allocate, launch, wait};
  p.regions = {{BufferId::transient(0), Access::read, 0, 1024},
               {BufferId::transient(1), Access::write, 0, 256}};
  CHECK(dump(p) ==
        "0 allocate s3 L1 index_q index_q/1024\n"
        "1 launch s3 L1 indexer.logits r:index_q+0/1024 w:index_logits+0/256\n"
        "2 wait host L0 indexer.logits e2\n");
}

TEST_CASE("JSON: nesting, order, commas") {
  JsonWriter json;
  json.begin_object().key("a").begin_array().value(1).value(-2).value(true).null().end_array();
  json.member("b", "x").key("c").begin_object().end_object().key("d").raw("[1]").end_object();
  CHECK(json.take() == R"({"a":[1,-2,true,null],"b":"x","c":{},"d":[1]})");
  json.begin_array().begin_array().end_array().begin_object().end_object().end_array();
  CHECK(json.take() == "[[],{}]");
}

TEST_CASE("JSON: strings are escaped and always UTF-8") {
  const auto text = [](std::string_view value) { return JsonWriter().value(value).take(); };
  CHECK(text("a\"b\\c/\n\r\t") == R"("a\"b\\c/\n\r\t")");
  CHECK(text(std::string_view("\0\x01\x1f\x7f", 4)) == R"("\u0000\u0001\u001f\u007f")");
  CHECK(text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(text("\xFFz") == '"' + bad + "z\"");
  CHECK(text("\xC0\x80") == '"' + bad + bad + '"');                      // overlong
  CHECK(text("\xED\xA0\x80") == '"' + bad + bad + bad + '"');            // surrogate
  CHECK(text("\xF4\x90\x80\x80") == '"' + bad + bad + bad + bad + '"');  // above U+10FFFF
  CHECK(text("\xE2\x82") == '"' + bad + bad + '"');                      // cut
}

TEST_CASE("JSON: numbers are exact, non-finite ones are strings") {
  const auto number = [](auto value) { return JsonWriter().value(value).take(); };
  CHECK(number(UINT64_MAX) == "18446744073709551615");
  CHECK(number(INT64_MIN) == "-9223372036854775808");
  CHECK(number(uint8_t{7}) == "7");
  CHECK(number(0.1f) == "0.1");
  CHECK(number(0.1) == "0.1");
  CHECK(number(-0.0) == "-0");
  CHECK(std::stof(number(1.17549435e-38f)) == 1.17549435e-38f);
  CHECK(number(std::numeric_limits<float>::quiet_NaN()) == "\"nan\"");
  CHECK(number(-std::numeric_limits<double>::infinity()) == "\"-inf\"");
  CHECK(number(std::numeric_limits<double>::infinity()) == "\"inf\"");
}

TEST_CASE("CRC-32C agrees with its published check values") {
  CHECK(crc32c("123456789", 9) == 0xE3069283u);
  const std::vector<uint8_t> zeros(32, 0), ones(32, 0xFF);
  CHECK(crc32c(zeros.data(), 32) == 0x8A9136AAu);
  CHECK(crc32c(ones.data(), 32) == 0x62A8AB43u);
  CHECK(crc32c("6789", 4, crc32c("12345", 5)) == 0xE3069283u);
  CHECK(crc32c("", 0) == 0);
}

TEST_CASE("a step is one line") {
  Step step;
  step.index = 12;
  step.bucket = 8;
  step.phase = Phase::mixed;
  step.departures = {{3, DepartureReason::finished}};
  step.arrivals = {{7, 2, 1, 120, 64, 10, false, {}}};
  step.page_changes = {{7, 4, 9, true}};
  step.rows = {{7, 64, 5, 0, false}, {7, 65, 6, 1, false}, {8, 120, 511, 2, true}};
  CHECK(to_text(step) ==
        "step 12 mixed bucket 8 rows 3 | -r3 finished | +r7 session 2 round 1 prompt 120 cached 64 "
        "max 10 | r7[4]=page 9 shared | r7@64..65* r8@120=511");
  StepOutput output;
  output.step = 12;
  output.order = "3.2";
  output.rows.resize(1);
  output.rows[0].request = 8;
  output.rows[0].position = 120;
  output.rows[0].token = 5;
  output.rows[0].log_sum_exp = 2.5f;
  output.rows[0].top = {{5, 1.25f}};
  CHECK(to_text(output) == "output 12 | r8@120 -> 5 (-1.25) | order 3.2");
}

}  // namespace redecode
