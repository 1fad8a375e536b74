#include <zstd.h>

#include <catch2/catch_test_macros.hpp>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/container.h"
#include "traces/crc32c.h"
#include "traces/error.h"
#include "traces/limits.h"
#include "traces/run_file.h"
#include "traces/zstd_frame.h"

namespace redecode {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes frame_of(const std::vector<uint64_t>& words, bool checksum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  Bytes out(ZSTD_compressBound(words.size() * 8));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), words.data(), words.size() * 8));
  ZSTD_freeCCtx(context);
  return out;
}

// A chunk with right checksums around whatever it is told to say.
Bytes chunk(ChunkHeader header, const Bytes& frame) {
  header.stored_bytes = frame.size();
  header.stored_crc = crc32c(frame.data(), frame.size());
  Bytes out = serialize(header);
  out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

ChunkHeader header_chunk(uint64_t words, uint32_t records = 1) {
  ChunkHeader header;
  header.kind = static_cast<uint8_t>(ChunkKind::header);
  header.payload_bytes = words * 8;
  header.record_count = records;
  return header;
}

std::string read(Bytes bytes) {
  try {
    ContainerReader reader(in_memory(std::move(bytes), "x"), FileKind::trace);
    RecordView record;
    size_t count = 0;
    while (reader.next(record)) ++count;
    return std::to_string(count) + (reader.end() == FileEnd::clean ? " clean" : " cut");
  } catch (const Error& e) {
    return std::string(error_name(e.code())) + ": " + e.message();
  }
}

const std::vector<uint64_t> kRecord = {uint64_t{2} << 32, 1, 2};

Bytes good_header() { return chunk(header_chunk(3), frame_of(kRecord)); }

// good_header() and a second chunk made by `change`.
std::string read_second(ChunkHeader second, const Bytes& frame) {
  Bytes bytes = good_header();
  second.previous = digest_bytes(bytes.data(), bytes.size());
  second.number = 1;
  const Bytes more = chunk(second, frame);
  bytes.insert(bytes.end(), more.begin(), more.end());
  return read(bytes);
}

}  // namespace

TEST_CASE("a chunk made by hand reads") { CHECK(read(good_header()) == "1 cut"); }

TEST_CASE("declared sizes above their caps are refused before memory is taken") {
  const Bytes frame = frame_of(kRecord);
  CHECK(read(chunk(header_chunk(uint64_t{1} << 59), frame)).starts_with("limit: payload size"));
  CHECK(read(chunk(header_chunk(limits::kChunkBytes / 8), frame))
            .starts_with("limit: payload size against stored size"));
  CHECK(read(chunk(header_chunk(3, UINT32_MAX), frame)).starts_with("limit: record count"));
  CHECK(read(chunk(header_chunk(3, 2), frame)).starts_with("corrupt: more records"));
  ChunkHeader header = header_chunk(3);
  header.stored_bytes = UINT64_MAX - 7;
  Bytes bytes = serialize(header);
  CHECK(read(bytes).starts_with("limit: stored size"));
}

TEST_CASE("a zstd bomb is refused by its ratio") {
  const Bytes bomb = frame_of(std::vector<uint64_t>(limits::kChunkBytes / 8, 0));
  CHECK(bomb.size() < limits::kChunkBytes / limits::kCompressionRatio);
  CHECK(read(chunk(header_chunk(limits::kChunkBytes / 8), bomb)).starts_with("limit"));
  // The same bomb behind a modest declaration.
  CHECK(read(chunk(header_chunk(3), bomb)).starts_with("corrupt: zstd frame declares"));
}

TEST_CASE("frames that are not one whole checksummed zstd frame are refused") {
  CHECK(read(chunk(header_chunk(3), frame_of(kRecord, false))).find("no checksum") !=
        std::string::npos);
  Bytes two = frame_of(kRecord);
  const Bytes again = two;
  two.insert(two.end(), again.begin(), again.end());
  CHECK(read(chunk(header_chunk(3), two)).find("does not end") != std::string::npos);
  CHECK(read(chunk(header_chunk(3), Bytes(40, 7))).find("not a zstd frame") != std::string::npos);
  CHECK(read(chunk(header_chunk(4), frame_of(kRecord))).find("declares another size") !=
        std::string::npos);
}

TEST_CASE("records that do not fill their chunk exactly are refused") {
  const auto header_of = [](std::vector<uint64_t> words) {
    return read(chunk(header_chunk(words.size()), frame_of(words)));
  };
  CHECK(header_of({uint64_t{2} << 32 | 1, 1, 2}).find("more than one segment") !=
        std::string::npos);
  CHECK(header_of({uint64_t{3} << 32, 1, 2}).find("runs over") != std::string::npos);
  CHECK(header_of({uint64_t{0xffffffff} << 32, 1, 2}).find("runs over") != std::string::npos);
  CHECK(header_of({0, 1, 2}).find("runs over") != std::string::npos);
  CHECK(header_of({uint64_t{1} << 32, 1, 2}).find("more records than") != std::string::npos);
}

TEST_CASE("chunks of a later minor version are skipped if they say so, else refused by name") {
  ChunkHeader later;
  later.minor = 3;
  later.kind = 9;
  later.payload_bytes = 24;
  later.record_count = 1;
  later.flags = kChunkHasCrc | kChunkSkippable;
  const Bytes frame = frame_of(kRecord);
  CHECK(read_second(later, frame) == "1 cut");
  later.flags = kChunkHasCrc;
  CHECK(read_second(later, frame) ==
        "version: chunk kind 9 of format version 1.3, this program knows 1.1");
  later.kind = static_cast<uint8_t>(ChunkKind::data);
  CHECK(read_second(later, frame) == "2 cut");
  later.codec = 2;
  CHECK(read_second(later, frame).find("unknown codec") != std::string::npos);
}

TEST_CASE("input that compresses too well is stored raw, and reads back") {
  FrameCompressor compressor(1);
  FrameDecompressor decompressor;
  for (const size_t size :
       {size_t{0}, size_t{8}, size_t{1} << 17, size_t{1} << 20, size_t{3000000}}) {
    const Bytes input(size, 0);
    const Bytes frame = compressor.compress(input);
    CHECK(input.size() <= frame.size() * limits::kCompressionRatio);
    Bytes out(size, 1);
    const char* fault = decompressor.decompress(frame, out);
    CHECK(std::string(fault == nullptr ? "" : fault).empty());
    CHECK(out == input);
  }
}

TEST_CASE("files that cannot be written say why") {
  const test::TempFolder folder;
  const RunHeader header = test::sample_run_header();
  const auto code = [](auto&& act) -> std::string {
    try {
      act();
    } catch (const Error& e) {
      return std::string(error_name(e.code())) + ": " + e.message();
    }
    return "none";
  };
  const auto path = folder / "r.rdr";
  CHECK(code([&] { RunWriter(path, header).close(); }) == "none");
  CHECK(code([&] { RunWriter(path, header).close(); }).starts_with("usage: file exists"));
  CHECK(code([&] { RunWriter(path, header, {}, true).close(); }) == "none");
  CHECK(code([&] { RunWriter(folder / "no" / "r.rdr", header); }).starts_with("missing"));
  CHECK(code([&] { RunWriter(folder / ".", header, {}, true); }).starts_with("environment"));
  WriterOptions options;
  options.zstd_level = 1000;
  CHECK(code([&] { RunWriter(folder / "z.rdr", header, options); }).starts_with("usage"));
}

TEST_CASE("a full disk is an error on that call and on every later one") {
  if (!std::filesystem::exists("/dev/full")) SKIP("no /dev/full here");
  try {
    RunWriter writer("/dev/full", test::sample_run_header(), {}, true);
    FAIL("the header was written");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::environment);
    CHECK(e.message().find("No space left") != std::string::npos);
    CHECK(e.context().starts_with("/dev/full"));
  }
}

}  // namespace redecode
