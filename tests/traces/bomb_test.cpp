#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "tests/traces/chunk_bytes.h"
#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/byte_source.h"
#include "traces/container.h"
#include "traces/error.h"
#include "traces/limits.h"
#include "traces/trace_file.h"

#if defined(__SANITIZE_ADDRESS__)
#define REDECODE_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REDECODE_TEST_ASAN 1
#endif
#endif

namespace redecode {
namespace {

using test::Bytes;
using test::Words;

constexpr rlim_t kRoomBytes = rlim_t{64} << 20;

uint64_t address_space_bytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0;
  in >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Exit status of `act` in a child that can take no more than 64 MiB; 255 where a signal ended it.
int in_small_memory(const std::function<int()>& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlim_t most = address_space_bytes() + kRoomBytes;
    const rlimit limit{most, most};
    int status = 101;
    if (::setrlimit(RLIMIT_AS, &limit) == 0) {
      try {
        status = act();
      } catch (const std::bad_alloc&) {
        status = 102;
      } catch (...) {
        status = 103;
      }
    }
    ::_exit(status);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

// 10 and the error's number, or 0 where all of it was read.
int read_all(const std::filesystem::path& path, bool salvage) {
  try {
    TraceReader reader(path, {.salvage = salvage});
    TraceRecord record;
    while (reader.next(record)) {
    }
    TraceReader other(path, {.salvage = salvage});
    while (other.seek(3) && other.next(record)) break;
    return 0;
  } catch (const Error& e) {
    return 10 + static_cast<int>(e.code());
  }
}

int code(ErrorCode error) { return 10 + static_cast<int>(error); }

// One frame of zeros, made piece by piece.
Bytes zeros_frame(uint64_t size_bytes) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setPledgedSrcSize(context, size_bytes);
  const Bytes piece(size_t{1} << 20, 0);
  Bytes out(size_bytes / 1024 + (size_t{1} << 20));
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  for (uint64_t done = 0; done < size_bytes; done += piece.size()) {
    ZSTD_inBuffer from{piece.data(), piece.size(), 0};
    const bool last = done + piece.size() == size_bytes;
    ZSTD_compressStream2(context, &to, &from, last ? ZSTD_e_end : ZSTD_e_continue);
  }
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

Bytes make_trace() {
  const test::TempFolder folder;
  WriterOptions options;
  options.chunk_steps = 8;
  {
    TraceWriter writer(folder / "g.rdt", test::sample_trace_header(), options);
    test::StepMaker maker(test::sample_trace_header(), 41);
    RandomSequence random(42);
    for (uint32_t i = 0; i < 16; ++i) {
      writer.write(maker.next());
      writer.write(test::arbitrary_output(random, i));
    }
    writer.close();
  }
  return test::read_bytes(folder / "g.rdt");
}

}  // namespace

TEST_CASE("bombs: declared sizes take no memory, in 64 MiB", "[slow]") {
#ifdef REDECODE_TEST_ASAN
  SKIP("address sanitizer needs address space of its own");
#endif
  const test::TempFolder folder;
  const auto path = folder / "bomb.rdt";
  const Bytes good = make_trace();
  const std::vector<test::ChunkBytes> chunks = test::split(good);
  const Bytes bomb = zeros_frame(uint64_t{1} << 30);
  REQUIRE(bomb.size() < (size_t{1} << 20));
  // The good file, then a chunk that says what `change` makes it say.
  const auto check = [&](ErrorCode expected, const Bytes& frame, auto&& change) {
    ChunkHeader header = chunks[2].header;
    header.record_count = 1;
    change(header);
    Bytes bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(chunks[2].begin));
    const Bytes chunk = test::chunk_of(header, frame);
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    test::write_bytes(path, bytes);
    CHECK(in_small_memory([&] { return read_all(path, false); }) == code(expected));
    CHECK(in_small_memory([&] { return read_all(path, true); }) == 0);
    // As the first chunk.
    header = chunks[0].header;
    change(header);
    test::write_bytes(path, test::chunk_of(header, frame));
    CHECK(in_small_memory([&] { return read_all(path, false); }) == code(expected));
    CHECK(in_small_memory([&] { return read_all(path, true); }) == code(expected));
  };
  check(ErrorCode::limit, bomb, [](ChunkHeader& h) { h.payload_bytes = uint64_t{1} << 30; });
  check(ErrorCode::limit, bomb, [](ChunkHeader& h) { h.payload_bytes = UINT64_MAX - 7; });
  check(ErrorCode::corrupt, bomb, [](ChunkHeader& h) { h.payload_bytes = limits::kChunkBytes; });
  check(ErrorCode::corrupt, bomb, [](ChunkHeader& h) { h.payload_bytes = 24; });
  check(ErrorCode::limit, test::frame_of(Words(3, 1)), [](ChunkHeader& h) {
    h.payload_bytes = 24;
    h.record_count = UINT32_MAX;
  });
  check(ErrorCode::corrupt, test::frame_of(Words(3, 1)),
        [](ChunkHeader& h) { h.payload_bytes = 25; });
}

TEST_CASE("bombs: messages that are cyclic, endless or crooked are refused, in 64 MiB", "[slow]") {
#ifdef REDECODE_TEST_ASAN
  SKIP("address sanitizer needs address space of its own");
#endif
  const test::TempFolder folder;
  const auto path = folder / "bomb.rdt";
  const Bytes good = make_trace();
  const auto table = [](uint64_t words) { return words << 32; };
  const uint64_t to_itself = 0xfffffffcu | uint64_t{1} << 48;  // struct, offset -1, one pointer
  const uint64_t list_of_4_billion = 1 | uint64_t{6} << 32 | uint64_t{0x1fffffff} << 35;
  const uint64_t voids_of_4_billion = 1 | uint64_t{0x1fffffff} << 35;
  const uint64_t far_pointer = 2 | uint64_t{7} << 32;
  const uint64_t far_to_itself = 2 | uint64_t{1} << 3;
  const uint64_t behind_the_end = uint64_t{1000} << 2 | uint64_t{1} << 32;
  std::vector<Words> messages;
  for (const uint64_t pointer : {to_itself, list_of_4_billion, voids_of_4_billion, far_pointer,
                                 far_to_itself, behind_the_end, ~uint64_t{0}}) {
    messages.push_back({table(1), pointer});
    // One data word (which arm), one pointer.
    for (uint64_t arm = 0; arm < 12; ++arm)
      messages.push_back({table(3), uint64_t{1} << 32 | uint64_t{1} << 48, arm, pointer});
  }
  messages.push_back({table(uint64_t{0xffffffff}), to_itself});
  messages.push_back({table(1) | 0xffffffffu, to_itself});
  int refused = 0;
  for (const Words& words : messages) {
    for (const size_t chunk : {size_t{0}, size_t{1}, size_t{2}, size_t{4}}) {
      test::write_bytes(path, test::with_payload(good, chunk, words));
      const int plain = in_small_memory([&] { return read_all(path, false); });
      const int salvaged = in_small_memory([&] { return read_all(path, true); });
      REQUIRE((plain == 0 || (plain >= 10 && plain < 30)));
      REQUIRE((salvaged == 0 || chunk == 0));
      refused += plain != 0 ? 1 : 0;
    }
  }
  CHECK(refused > 200);
}

TEST_CASE("bombs: words changed at random under right checksums never crash, in 64 MiB") {
#ifdef REDECODE_TEST_ASAN
  SKIP("address sanitizer needs address space of its own");
#endif
  const test::TempFolder folder;
  const Bytes good = make_trace();
  const std::vector<test::ChunkBytes> chunks = test::split(good);
  const auto act = [&] {
    RandomSequence random(43);
    for (int i = 0; i < 800; ++i) {
      const size_t chunk = random.below(chunks.size());
      Words words = test::payload_of(good, chunks[chunk]);
      for (uint64_t n = 1 + random.below(3); n > 0; --n) {
        uint64_t& word = words[random.below(words.size())];
        word = random.below(2) != 0 ? word ^ uint64_t { 1 } << random.below(64) : random.next();
      }
      const auto path = folder / "changed.rdt";
      test::write_bytes(path, test::with_payload(good, chunk, words));
      for (const bool salvage : {false, true})
        if (read_all(path, salvage) >= 30) return 1;
    }
    return 0;
  };
  CHECK(in_small_memory(act) == 0);
}

}  // namespace redecode
