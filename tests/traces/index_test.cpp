#include <catch2/catch_test_macros.hpp>

#include "tests/traces/chunk_bytes.h"
#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/capnp_message.h"
#include "traces/container.h"
#include "traces/error.h"
#include "traces/trace_file.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using test::Bytes;
using Root = schema::TraceRecord;
constexpr StepIndex kSteps = 23;
constexpr size_t kNone = SIZE_MAX;

struct Golden {
  Bytes bytes;
  std::vector<Step> steps;
  std::vector<test::ChunkBytes> chunks;  // the last two: index and end
};

// Three steps a chunk; a gap takes the numbers 10 to 14, a chunk in the middle holds no step.
Golden make_golden(bool index = true) {
  const test::TempFolder folder;
  Golden golden;
  WriterOptions options;
  options.chunk_steps = 3;
  options.index = index;
  {
    TraceWriter writer(folder / "g.rdt", test::sample_trace_header(), options);
    test::StepMaker maker(test::sample_trace_header(), 21);
    for (StepIndex i = 0; i < kSteps; ++i) {
      Step step = maker.next();
      if (i == 7) {
        writer.flush();
        writer.write(Event{.before_step = i, .text = "alone in its chunk"});
        writer.flush();
      }
      if (i >= 10) step.index += 5;
      if (i == 10) writer.write(Gap{.first = 10, .last = 14, .count = 5, .causes = kGapRingFull});
      golden.steps.push_back(step);
      writer.write(step);
    }
    writer.close();
  }
  golden.bytes = test::read_bytes(folder / "g.rdt");
  golden.chunks = test::split(golden.bytes);
  return golden;
}

// Place in golden.steps of the first step that a seek gives; kNone when there is none.
size_t seek(const Bytes& bytes, const Golden& golden, StepIndex step) {
  TraceReader reader(in_memory(bytes, "golden"));
  if (!reader.seek(step)) return kNone;
  TraceRecord record;
  while (reader.next(record)) {
    if (!record.step || record.step->index < step) continue;
    for (size_t i = 0; i < golden.steps.size(); ++i)
      if (golden.steps[i] == *record.step) return i;
    FAIL("a step that was never written");
  }
  return kNone;
}

// What seek must give where only `count` steps are there.
size_t truth(const Golden& golden, StepIndex step, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (golden.steps[i].index >= step) return i;
  return kNone;
}

codec::Message record_of(const std::vector<ChunkEntry>& entries) {
  codec::Scratch scratch;
  return codec::build<Root>(scratch,
                            [&](Root::Builder root) { codec::write(entries, root.initIndex()); });
}

}  // namespace

TEST_CASE("index: a scan of a file without index and end gives the same record, byte for byte") {
  const Golden golden = make_golden();
  const size_t kept = golden.chunks.size() - 2;
  REQUIRE(golden.chunks[kept].header.kind == static_cast<uint8_t>(ChunkKind::index));
  CHECK((golden.chunks[kept].header.flags & kChunkSkippable) != 0);
  const auto end = golden.bytes.begin() + static_cast<ptrdiff_t>(golden.chunks[kept].begin);
  const auto bare = in_memory(Bytes(golden.bytes.begin(), end), "bare");
  CHECK(read_index_record(*bare).empty());
  const auto whole = in_memory(golden.bytes, "whole");
  const std::vector<uint64_t> written = read_index_record(*whole);
  REQUIRE_FALSE(written.empty());
  CHECK(record_of(scan_chunks(*bare)) == written);
  CHECK(scan_chunks(*whole).size() == golden.chunks.size());
}

TEST_CASE("index: seek gives the same with an index, without one, and in every cut file") {
  const Golden golden = make_golden(), bare = make_golden(false);
  REQUIRE(bare.steps == golden.steps);
  for (StepIndex step = 0; step < kSteps + 8; ++step) {
    REQUIRE(seek(golden.bytes, golden, step) == truth(golden, step, kSteps));
    REQUIRE(seek(bare.bytes, golden, step) == truth(golden, step, kSteps));
  }
  RandomSequence random(3);
  for (uint64_t size = golden.chunks[0].end; size < golden.bytes.size(); ++size) {
    size_t count = 0;
    for (const test::ChunkBytes& chunk : golden.chunks)
      if (chunk.end <= size) count += chunk.header.step_count;
    const Bytes cut(golden.bytes.begin(), golden.bytes.begin() + static_cast<ptrdiff_t>(size));
    const StepIndex step = random.below(kSteps + 8);
    REQUIRE(seek(cut, golden, step) == truth(golden, step, count));
  }
}

TEST_CASE("index: a seek leaves the state that reading up to there leaves") {
  const Golden golden = make_golden();
  TraceReader straight(in_memory(golden.bytes, "golden"));
  TraceRecord record;
  while (straight.next(record)) {
    if (!record.step || record.step->index % 4 != 0) continue;
    TraceReader sought(in_memory(golden.bytes, "golden"));
    REQUIRE(sought.seek(record.step->index));
    TraceRecord other;
    while (sought.next(other))
      if (other.step && other.step->index == record.step->index) break;
    REQUIRE(other.step == record.step);
    REQUIRE(sought.state().keyframe() == straight.state().keyframe());
  }
}

TEST_CASE("index: one that lies with right checksums is found out, and nothing else changes") {
  const Golden golden = make_golden();
  const auto source = in_memory(golden.bytes, "golden");
  std::vector<ChunkEntry> entries = scan_chunks(*source);
  entries.resize(entries.size() - 2);
  const size_t index_chunk = entries.size();
  const auto check = [&](const std::vector<ChunkEntry>& lie) {
    const Bytes bytes = test::with_payload(golden.bytes, index_chunk, record_of(lie));
    for (StepIndex step = 0; step < kSteps + 8; step += 2)
      REQUIRE(seek(bytes, golden, step) == truth(golden, step, kSteps));
  };
  check(entries);
  check({});
  for (size_t i = 0; i < entries.size(); ++i) {
    std::vector<ChunkEntry> lie = entries;
    lie.erase(lie.begin() + static_cast<ptrdiff_t>(i));
    check(lie);
    lie = entries;
    lie.resize(i + 1);
    check(lie);
    lie = entries;
    std::swap(lie[i], lie[entries.size() - 1 - i]);
    check(lie);
    const auto change = [&](auto&& act) {
      lie = entries;
      act(lie[i]);
      check(lie);
    };
    change([](ChunkEntry& e) { e.offset_bytes += 8; });
    change([](ChunkEntry& e) { e.offset_bytes = UINT64_MAX - 7; });
    change([](ChunkEntry& e) { e.size_bytes = UINT64_MAX; });
    change([](ChunkEntry& e) { ++e.number; });
    change([](ChunkEntry& e) { e.kind = static_cast<uint8_t>(ChunkKind::data); });
    change([](ChunkEntry& e) { e.steps.first += 2; });
    change([](ChunkEntry& e) { e.steps.first = UINT64_MAX; });
    change([](ChunkEntry& e) { e.steps.count = 0; });
    change([](ChunkEntry& e) { e.steps.count += 2; });
    change([](ChunkEntry& e) { e.stored_crc ^= 1; });
  }
}

TEST_CASE("index: damage of it or of the end leaves seeking to the scan") {
  const Golden golden = make_golden();
  for (size_t i = golden.chunks.size() - 2; i < golden.chunks.size(); ++i) {
    for (uint64_t at = golden.chunks[i].begin; at < golden.chunks[i].end; at += 3) {
      Bytes bytes = golden.bytes;
      bytes[at] ^= 0x10;
      TraceReader reader(in_memory(bytes, "golden"));
      REQUIRE(reader.seek(19));
      TraceRecord record;
      REQUIRE(reader.next(record));
      REQUIRE(record.step);
      REQUIRE(*record.step == golden.steps[record.step->index - 5]);
      REQUIRE(record.step->index <= 19);
    }
  }
}

}  // namespace redecode
