#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "tests/traces/chunk_bytes.h"
#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/byte_source.h"
#include "traces/error.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using test::Bytes;

constexpr uint32_t kChunkSteps = 3;
constexpr uint32_t kSteps = 21;

struct Golden {
  Bytes bytes;
  std::vector<Step> steps;
  std::vector<test::ChunkBytes> chunks;
  size_t chunk_at(uint64_t byte) const {
    size_t i = 0;
    while (chunks[i].end <= byte) ++i;
    return i;
  }
  bool is(size_t chunk, ChunkKind kind) const {
    return chunks[chunk].header.kind == static_cast<uint8_t>(kind);
  }
  Bytes join(const std::vector<size_t>& order) const {
    Bytes out;
    for (const size_t i : order)
      out.insert(out.end(), bytes.begin() + static_cast<ptrdiff_t>(chunks[i].begin),
                 bytes.begin() + static_cast<ptrdiff_t>(chunks[i].end));
    return out;
  }
};

Golden make_golden(StepLayout layout, uint64_t seed = 9) {
  const test::TempFolder folder;
  Golden golden;
  WriterOptions options;
  options.chunk_steps = kChunkSteps;
  options.layout = layout;
  {
    TraceWriter writer(folder / "g.rdt", test::sample_trace_header(), options);
    test::StepMaker maker(test::sample_trace_header(), seed);
    for (uint32_t i = 0; i < kSteps; ++i) {
      golden.steps.push_back(maker.next());
      writer.write(golden.steps.back());
    }
    writer.close();
  }
  golden.bytes = test::read_bytes(folder / "g.rdt");
  golden.chunks = test::split(golden.bytes);
  return golden;
}

struct Outcome {
  std::optional<ErrorCode> error;
  std::vector<Step> steps;
  std::vector<Gap> gaps;
  std::vector<std::string> damage;
  FileSummary summary;
};

Outcome read_all(const Bytes& bytes, bool salvage) {
  Outcome out;
  try {
    TraceReader reader(in_memory(bytes, "golden"), {.salvage = salvage});
    TraceRecord record;
    while (reader.next(record)) {
      if (record.step) out.steps.push_back(*record.step);
      if (record.gap) out.gaps.push_back(*record.gap);
    }
    out.damage = reader.damage();
    out.summary = reader.summary();
  } catch (const Error& e) {
    out.error = e.code();
  }
  return out;
}

// Every step that was read is the one that was written.
bool all_true(const Outcome& out, const Golden& golden) {
  StepIndex next = 0;
  for (const Step& step : out.steps) {
    if (step.index < next || step.index >= golden.steps.size()) return false;
    if (step != golden.steps[step.index]) return false;
    next = step.index + 1;
  }
  return true;
}

// How often each step is accounted for: read, or in a gap.
bool each_once(const Outcome& out) {
  std::vector<int> times(kSteps, 0);
  for (const Step& step : out.steps) ++times[step.index];
  for (const Gap& gap : out.gaps) {
    if (gap.last >= kSteps || gap.count != gap.last - gap.first + 1) return false;
    if ((gap.causes & kGapDamaged) == 0) return false;
    for (StepIndex i = gap.first; i <= gap.last; ++i) ++times[i];
  }
  return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
}

bool covers_exactly(const Outcome& out, const test::ChunkBytes& chunk) {
  return out.gaps.size() == 1 && out.gaps[0].first == chunk.header.first_step &&
         out.gaps[0].count == chunk.header.step_count;
}

void check_flip(const Golden& golden, uint64_t byte, const Outcome& plain,
                const Outcome& salvaged) {
  const size_t hit = golden.chunk_at(byte);
  REQUIRE(all_true(plain, golden));
  REQUIRE((plain.error || plain.summary.end == FileEnd::cut));
  if (hit == 0) {
    REQUIRE(salvaged.error);
    return;
  }
  REQUIRE_FALSE(salvaged.error);
  REQUIRE(all_true(salvaged, golden));
  REQUIRE(each_once(salvaged));
  if (golden.is(hit, ChunkKind::data)) {
    REQUIRE(covers_exactly(salvaged, golden.chunks[hit]));
  } else {
    REQUIRE(salvaged.gaps.empty());
  }
  if (golden.is(hit, ChunkKind::end)) {
    REQUIRE(salvaged.summary.end == FileEnd::cut);
    return;
  }
  REQUIRE(salvaged.summary.end == FileEnd::clean);
  REQUIRE(salvaged.summary.damaged_chunks == 1);
  REQUIRE(salvaged.damage.size() == 1);
}

}  // namespace

TEST_CASE("salvage: of 10,000 flipped bits each costs its chunk, exactly as stated", "[slow]") {
  for (const StepLayout layout : {StepLayout::rows, StepLayout::columns}) {
    const Golden golden = make_golden(layout);
    RandomSequence random(layout == StepLayout::rows ? 11 : 12);
    for (int i = 0; i < 5000; ++i) {
      Bytes bytes = golden.bytes;
      const uint64_t byte = random.below(bytes.size());
      bytes[byte] ^= static_cast<uint8_t>(1u << random.below(8));
      check_flip(golden, byte, read_all(bytes, false), read_all(bytes, true));
    }
  }
}

TEST_CASE("salvage: several faults at once never make a wrong step") {
  const Golden golden = make_golden(StepLayout::rows);
  RandomSequence random(13);
  for (int i = 0; i < 1000; ++i) {
    Bytes bytes = golden.bytes;
    for (uint64_t n = 2 + random.below(6); n > 0; --n) {
      const uint64_t at = random.below(bytes.size());
      for (uint64_t k = 0; k < 1 + random.below(64) && at + k < bytes.size(); ++k)
        bytes[at + k] = static_cast<uint8_t>(random.next());
    }
    if (random.below(3) == 0) bytes.resize(random.below(bytes.size()));
    const Outcome out = read_all(bytes, true);
    REQUIRE(all_true(out, golden));
    if (!out.error && out.steps.size() != kSteps)
      REQUIRE((!out.damage.empty() || out.summary.end == FileEnd::cut));
  }
}

TEST_CASE("salvage: a cut file reads as without salvage, at every byte", "[slow]") {
  const Golden golden = make_golden(StepLayout::columns);
  for (size_t size = 0; size <= golden.bytes.size(); ++size) {
    const Bytes bytes(golden.bytes.begin(), golden.bytes.begin() + static_cast<ptrdiff_t>(size));
    const Outcome plain = read_all(bytes, false), salvaged = read_all(bytes, true);
    REQUIRE(plain.error == salvaged.error);
    REQUIRE(plain.steps == salvaged.steps);
    REQUIRE(plain.summary.end == salvaged.summary.end);
    REQUIRE(plain.summary.cut_offset_bytes == salvaged.summary.cut_offset_bytes);
    REQUIRE(salvaged.damage.empty());
    REQUIRE(all_true(plain, golden));
  }
}

TEST_CASE("salvage: chunks that are lost, repeated, swapped, or another recording's") {
  const Golden golden = make_golden(StepLayout::rows);
  REQUIRE(golden.chunks.size() == 11);  // header, schema, 7 of data, index, end
  const auto lost = [&](const std::vector<size_t>& order) {
    const Outcome out = read_all(golden.join(order), true);
    REQUIRE_FALSE(out.error);
    REQUIRE(all_true(out, golden));
    REQUIRE(each_once(out));
    REQUIRE(out.damage.empty() ==
            (order.size() == 11 && std::is_sorted(order.begin(), order.end())));
    return out.gaps;
  };
  CHECK(lost({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).empty());
  const std::vector<Gap> third = lost({0, 1, 2, 3, 5, 6, 7, 8, 9, 10});
  REQUIRE(third.size() == 1);
  CHECK(third[0].first == 6);
  CHECK(third[0].last == 8);
  CHECK(lost({0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10}).empty());
  CHECK(lost({0, 1, 2, 4, 3, 5, 6, 7, 8, 9, 10}).size() == 1);
  CHECK(lost({0, 2, 3, 4, 5, 6, 7, 8, 9, 10}).empty());
  CHECK(lost({0, 1, 2, 3, 4, 5, 6, 7, 9, 10}).size() == 1);
  CHECK(lost({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5}).empty());

  // The tail of a recording that began the same way: none of its steps is taken for ours.
  const Golden other = make_golden(StepLayout::rows, 10);
  Bytes mixed = golden.join({0, 1, 2, 3});
  const Bytes tail = other.join({4, 5, 6, 7, 8, 9, 10});
  mixed.insert(mixed.end(), tail.begin(), tail.end());
  const Outcome out = read_all(mixed, true);
  CHECK(all_true(out, golden));
  CHECK(out.steps.size() == 6);
  CHECK(out.summary.end == FileEnd::cut);
  CHECK(out.damage.size() == 1);
  CHECK(read_all(mixed, false).error == ErrorCode::corrupt);
}

TEST_CASE("salvage: garbage between chunks costs nothing but itself") {
  const Golden golden = make_golden(StepLayout::rows);
  RandomSequence random(14);
  for (size_t before = 1; before < golden.chunks.size(); ++before) {
    Bytes bytes = golden.bytes;
    Bytes garbage(8 * (1 + random.below(20000)));
    for (uint8_t& byte : garbage) byte = static_cast<uint8_t>(random.next());
    const auto at = bytes.begin() + static_cast<ptrdiff_t>(golden.chunks[before].begin);
    bytes.insert(at, garbage.begin(), garbage.end());
    const Outcome out = read_all(bytes, true);
    REQUIRE(out.steps == golden.steps);
    REQUIRE(out.gaps.empty());
    REQUIRE(out.damage.size() == 1);
    REQUIRE(out.summary.end == FileEnd::clean);
    REQUIRE(read_all(bytes, false).error == ErrorCode::corrupt);
  }
}

TEST_CASE("salvage: a chunk whose checksums are right and whose records are not costs itself") {
  const Golden golden = make_golden(StepLayout::rows);
  for (size_t i = 2; i < 9; ++i) {
    test::Words words = test::payload_of(golden.bytes, golden.chunks[i]);
    words[0] = uint64_t{0xffffffff} << 32;
    const Bytes bytes = test::with_payload(golden.bytes, i, words);
    CHECK(read_all(bytes, false).error == ErrorCode::corrupt);
    const Outcome out = read_all(bytes, true);
    REQUIRE(all_true(out, golden));
    REQUIRE(each_once(out));
    REQUIRE(covers_exactly(out, golden.chunks[i]));
  }
}

}  // namespace redecode
