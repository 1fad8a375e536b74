#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/byte_source.h"
#include "traces/error.h"
#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using Bytes = std::vector<uint8_t>;

struct Golden {
  Bytes bytes;
  std::vector<Step> steps;
  std::vector<uint64_t> chunk_ends;  // offsets
};

// Several small chunks of two steps.
Golden make_golden() {
  const test::TempFolder folder;
  Golden golden;
  const auto path = folder / "g.rdt";
  WriterOptions options;
  options.chunk_steps = 2;
  options.schema = options.index = false;
  {
    TraceWriter writer(path, test::sample_trace_header(), options);
    golden.chunk_ends.push_back(writer.bytes_written());
    test::StepMaker maker(test::sample_trace_header(), 9);
    for (int i = 0; i < 10; ++i) {
      golden.steps.push_back(maker.next());
      writer.write(golden.steps.back());
      if (i % 2 == 1) golden.chunk_ends.push_back(writer.bytes_written());
    }
    writer.close();
    golden.chunk_ends.push_back(writer.bytes_written());
  }
  golden.bytes = test::read_bytes(path);
  return golden;
}

struct Outcome {
  std::optional<ErrorCode> error;
  std::string context;
  std::vector<Step> steps;
  FileEnd end = FileEnd::cut;
  uint64_t cut_offset_bytes = 0;
};

Outcome read_all(Bytes bytes) {
  Outcome out;
  try {
    TraceReader reader(in_memory(std::move(bytes), "golden"));
    TraceRecord record;
    while (reader.next(record))
      if (record.step) out.steps.push_back(*record.step);
    out.end = reader.summary().end;
    out.cut_offset_bytes = reader.summary().cut_offset_bytes;
  } catch (const Error& e) {
    out.error = e.code();
    out.context = e.context();
  }
  return out;
}

bool is_prefix(const std::vector<Step>& part, const std::vector<Step>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

ErrorCode code_of(Bytes bytes) {
  const Outcome out = read_all(std::move(bytes));
  REQUIRE(out.error);
  return *out.error;
}

}  // namespace

TEST_CASE("a file cut at any byte is readable up to its last whole chunk") {
  const Golden golden = make_golden();
  REQUIRE(golden.chunk_ends.size() == 7);
  REQUIRE(golden.chunk_ends.back() == golden.bytes.size());
  for (size_t size = 0; size < golden.bytes.size(); ++size) {
    const Outcome out = read_all(Bytes(golden.bytes.begin(), golden.bytes.begin() + size));
    if (size < golden.chunk_ends[0]) {
      REQUIRE(out.error == (size == 0 ? ErrorCode::corrupt : ErrorCode::truncated));
      continue;
    }
    REQUIRE_FALSE(out.error);
    REQUIRE(out.end == FileEnd::cut);
    size_t chunks = 0;
    while (golden.chunk_ends[chunks + 1] <= size) ++chunks;
    REQUIRE(out.steps.size() == 2 * chunks);
    REQUIRE(is_prefix(out.steps, golden.steps));
    REQUIRE(out.cut_offset_bytes == golden.chunk_ends[chunks]);
  }
}

TEST_CASE("no flipped bit yields a wrong value") {
  const Golden golden = make_golden();
  RandomSequence random(11);
  size_t errors = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = golden.bytes;
    bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1u << random.below(8));
    const Outcome out = read_all(bytes);
    errors += out.error ? 1 : 0;
    REQUIRE(is_prefix(out.steps, golden.steps));
    // Either refused, or said to be cut: never the whole file as if nothing had happened.
    REQUIRE((out.error || out.end == FileEnd::cut));
    if (out.error)
      REQUIRE((out.error == ErrorCode::corrupt || out.error == ErrorCode::version ||
               out.error == ErrorCode::limit));
  }
  CHECK(errors > 1900);
}

TEST_CASE("a tail of zeros, as a power cut leaves it, is a cut") {
  const Golden golden = make_golden();
  Bytes bytes(golden.bytes.begin(), golden.bytes.begin() + golden.chunk_ends[2]);
  bytes.resize(bytes.size() + 5000);
  const Outcome out = read_all(bytes);
  CHECK_FALSE(out.error);
  CHECK(out.steps.size() == 4);
  CHECK(out.cut_offset_bytes == golden.chunk_ends[2]);
  bytes.push_back(1);
  CHECK(code_of(bytes) == ErrorCode::corrupt);
}

TEST_CASE("chunks that are lost, repeated, swapped or appended are found") {
  const Golden golden = make_golden();
  const auto chunk = [&](size_t i) {
    const auto begin = golden.bytes.begin();
    return Bytes(i == 0 ? begin : begin + golden.chunk_ends[i - 1], begin + golden.chunk_ends[i]);
  };
  const auto join = [&](std::vector<size_t> order) {
    Bytes out;
    for (const size_t i : order) {
      const Bytes part = chunk(i);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  };
  CHECK_FALSE(read_all(join({0, 1, 2, 3, 4, 5, 6})).error);
  CHECK(code_of(join({0, 2, 3, 4, 5, 6})) == ErrorCode::corrupt);
  CHECK(code_of(join({0, 1, 1, 2})) == ErrorCode::corrupt);
  CHECK(code_of(join({0, 2, 1})) == ErrorCode::corrupt);
  CHECK(code_of(join({0, 1, 0})) == ErrorCode::corrupt);
  CHECK(code_of(join({1, 2})) == ErrorCode::corrupt);
  CHECK(code_of(join({0, 1, 2, 3, 4, 5, 6, 6})) == ErrorCode::corrupt);
}

TEST_CASE("an error names file, chunk and byte") {
  const Golden golden = make_golden();
  Bytes bytes = golden.bytes;
  bytes[golden.chunk_ends[3] - 1] ^= 1;
  const Outcome out = read_all(bytes);
  CHECK(out.error == ErrorCode::corrupt);
  CHECK(out.context == "golden: chunk 3 at byte " + std::to_string(golden.chunk_ends[2]));
  CHECK(out.steps.size() == 4);
}

TEST_CASE("what is no trace is refused by what it is") {
  const test::TempFolder folder;
  const auto message = [](Bytes bytes) -> std::string {
    try {
      TraceReader reader(in_memory(std::move(bytes), "x"));
    } catch (const Error& e) {
      return std::string(error_name(e.code())) + ": " + e.message();
    }
    return "none";
  };
  CHECK(message({}) == "corrupt: not a redecode trace: empty file");
  CHECK(message({'P', 'K', 3, 4}) == "corrupt: not a redecode trace");
  CHECK(message(Bytes(5000, 0)) == "corrupt: not a redecode trace");

  Bytes other_version = make_golden().bytes;
  other_version[16] = 2;
  CHECK(message(other_version) == "version: format version 2, this program reads version 1");

  {
    RunWriter writer(folder / "r.rdr", test::sample_run_header());
    writer.close();
  }
  CHECK(message(test::read_bytes(folder / "r.rdr")) == "usage: this is a run, not a trace");

  const auto code = [](auto&& act) {
    try {
      act();
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::usage;
  };
  CHECK(code([&] { TraceReader reader(folder / "none.rdt"); }) == ErrorCode::missing);
  CHECK(code([&] { TraceReader reader(folder / "."); }) == ErrorCode::missing);
}

}  // namespace redecode
