#include "engine/memory/bindings.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "tests/memory/ends_with_bug.h"
#include "tests/memory/heap_source.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Builder {
  Program program;
  std::shared_ptr<NameTable> names = std::make_shared<NameTable>();
  std::vector<Binding> persistents;

  Builder() {
    program.names = names;
    program.persistents = std::make_shared<const std::vector<PersistentBuffer>>();
  }
  BufferId make(const char* name, uint64_t size_bytes, StreamId stream = 0) {
    names->names.emplace_back(name);
    program.transients.push_back(
        {static_cast<NameId>(names->names.size() - 1), 0, stream, size_bytes});
    return BufferId::transient(static_cast<uint32_t>(program.transients.size() - 1));
  }
  void add(CommandKind kind, BufferId buffer, StreamId stream = 0) {
    Command c;
    c.kind = kind;
    c.stream = stream;
    c.buffer = buffer;
    program.commands.push_back(c);
  }
  void allocate(BufferId b) { add(CommandKind::allocate, b); }
  void free(BufferId b) { add(CommandKind::free, b); }
};

TEST_CASE("bind walks allocations and frees in program order") {
  Builder p;
  const BufferId a = p.make("a", 1000), b = p.make("b", 3000), c = p.make("c", 700);
  p.allocate(a);
  p.allocate(b);
  p.free(a);
  p.allocate(c);  // lands where a was
  HeapSource source;
  Pool pool(source);
  const Bindings bound = bind(p.program, pool, kOrdinaryPool, p.persistents);
  CHECK(bound.of(a).place == Placement{0, 0, 1024});
  CHECK(bound.of(b).place == Placement{0, 1024, 3072});
  CHECK(bound.of(c).address == bound.of(a).address);
  CHECK(bound.of(c).size_bytes == 700);
  CHECK(bound.of(c).generation == 3);
  CHECK(bound.of(a).allocated_by == 0);
  CHECK(bound.of(a).freed_by == 2);
  CHECK(bound.of(c).allocated_by == 3);
  CHECK(bound.of(c).freed_by == UINT32_MAX);
  CHECK(pool.stats().live_blocks == 2);
  release(bound, pool);
  CHECK(pool.stats().live_blocks == 0);
}

TEST_CASE("bind takes each buffer from its owner's list and obeys record_stream") {
  Builder p;
  const BufferId a = p.make("a", 512, 1), b = p.make("b", 512, 1), c = p.make("c", 512, 0);
  p.allocate(a);
  p.allocate(c);
  p.add(CommandKind::record_stream, a, 0);
  p.free(a);
  p.allocate(b);
  HeapSource source;
  Pool pool(source);
  const Bindings bound = bind(p.program, pool, kOrdinaryPool, p.persistents);
  CHECK(bound.of(a).place.segment != bound.of(c).place.segment);
  CHECK(bound.of(b).place != bound.of(a).place);
  CHECK(pool.stats().deferred_blocks == 1);
  release(bound, pool);
  CHECK(pool.stats().live_blocks == 0);
}

TEST_CASE("persistent buffers come from the caller's table") {
  Builder p;
  p.persistents.resize(2);
  p.persistents[1].size_bytes = 77;
  HeapSource source;
  Pool pool(source);
  const Bindings bound = bind(p.program, pool, kOrdinaryPool, p.persistents);
  CHECK(&bound.of(BufferId::persistent(1)) == &p.persistents[1]);
  CHECK(bound.of(BufferId::persistent(1)).block == kNoBlock);
  release(bound, pool);
}

TEST_CASE("equal aliasing has equal digests, other aliasing another") {
  const auto digest = [](bool early_free, HeapSource source) {
    Builder p;
    const BufferId a = p.make("a", 512), b = p.make("b", 512);
    p.allocate(a);
    if (early_free) p.free(a);
    p.allocate(b);
    if (!early_free) p.free(a);
    Pool pool(source);
    return bind(p.program, pool, kOrdinaryPool, p.persistents).layout_digest();
  };
  CHECK(digest(false, HeapSource()) == digest(false, HeapSource(uint64_t{1} << 44, true)));
  CHECK(digest(false, HeapSource()) != digest(true, HeapSource()));
}

TEST_CASE("an exhausted pool is an environment error that names the buffer and gives all back") {
  Builder p;
  const BufferId a = p.make("small", 512), b = p.make("logits", 9 * kMiB);
  p.allocate(a);
  p.allocate(b);
  HeapSource source;
  Pool pool(source, 2 * kMiB);
  try {
    bind(p.program, pool, kOrdinaryPool, p.persistents);
    FAIL("did not throw");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::environment);
    CHECK(e.message().find("`logits`") != std::string::npos);
    CHECK(e.message().find(std::to_string(9 * kMiB)) != std::string::npos);
  }
  CHECK(pool.stats().live_blocks == 0);
}

TEST_CASE("a program that frees twice or before it allocates is a bug") {
  HeapSource source;
  Pool pool(source);
  Builder twice;
  const BufferId a = twice.make("a", 512);
  twice.allocate(a);
  twice.free(a);
  twice.free(a);
  CHECK(ends_with_bug([&] { bind(twice.program, pool, kOrdinaryPool, twice.persistents); }));
  Builder never;
  never.free(never.make("a", 512));
  CHECK(ends_with_bug([&] { bind(never.program, pool, kOrdinaryPool, never.persistents); }));
}

}  // namespace
}  // namespace redecode
