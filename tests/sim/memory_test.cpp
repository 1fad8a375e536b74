#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "tests/sim/sim_fixture.h"

using namespace redecode;
using namespace redecode::test;

TEST_CASE("reserved memory is aligned and reads as the unwritten pattern") {
  SimFixture sim;
  for (const uint64_t size : {uint64_t{1}, uint64_t{513}, uint64_t{1} << 20}) {
    std::byte* const base = sim.device.reserve(size);
    REQUIRE(base != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(base) % 512 == 0);
    std::vector<std::byte> bytes(size);
    sim.device.read(base, bytes);
    CHECK(bytes == std::vector<std::byte>(size, kUnwrittenByte));
    sim.device.release(base);
  }
  CHECK(sim.device.reserve(UINT64_MAX) == nullptr);
#ifndef __SANITIZE_ADDRESS__  // ends the process instead of returning null
  CHECK(sim.device.reserve(uint64_t{1} << 62) == nullptr);
#endif
}

TEST_CASE("host access needs a synced device, release a reserved segment") {
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels);
    b.touch(0);
    const auto order = make_order("fifo");
    sim.device.submit(b.program, sim.bindings, *order, nullptr);
    sim.values();
  }));
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels);
    b.touch(0);
    const auto order = make_order("fifo");
    sim.device.submit(b.program, sim.bindings, *order, nullptr);
    sim.clear_buffers();
  }));
  CHECK(ends_with_bug([] {
    SimFixture sim;
    std::byte foreign[1];
    sim.device.release(foreign);
  }));
  CHECK_FALSE(ends_with_bug([] {
    SimFixture sim;
    sim.device.release(sim.device.reserve(1));
  }));
}

TEST_CASE("programs that are not well formed are bugs") {
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels);
    b.copy(0, 0, 1);
    b.program.regions.back().offset_bytes = 1;  // reaches beyond its buffer
    sim.device.submit(b.program, sim.bindings, *make_order("fifo"), nullptr);
  }));
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels);
    b.touch(0);
    b.program.commands[0].kernel = 99;
    sim.device.submit(b.program, sim.bindings, *make_order("fifo"), nullptr);
  }));
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels, 1);
    b.record(0, 1);
    sim.device.submit(b.program, sim.bindings, *make_order("fifo"), nullptr);
  }));
  CHECK(ends_with_bug([] {
    SimFixture sim;
    ProgramBuilder b(sim.kernels);
    b.touch(16);
    sim.device.submit(b.program, sim.bindings, *make_order("fifo"), nullptr);
  }));
}

namespace {

constexpr uint64_t kPoison = UINT64_MAX;

// Transient i of the fixture shares its bytes with persistent buffer i.
uint64_t after(SimFixture& sim, const Program& program, const char* order_text, uint32_t buffer) {
  sim.clear_buffers();
  const auto order = make_order(order_text);
  sim.device.submit(program, sim.bindings, *order, nullptr);
  sim.device.sync(*order, nullptr);
  return sim.value<uint64_t>(buffer);
}

}  // namespace

TEST_CASE("poison fills a freed block, and only when asked") {
  SimFixture plain, poisoned({.poison = true});
  ProgramBuilder b(plain.kernels);
  b.allocate(0, 3).set(0, 3, 5).free(3);
  for (const char* order : {"paced:1", "seed:1", "fifo"}) {
    CHECK(after(plain, b.program, order, 3) == 5);
    CHECK(after(poisoned, b.program, order, 3) == kPoison);
    CHECK(poisoned.value<uint64_t>(4) == 0);
  }
  std::byte last[1];
  poisoned.device.read(poisoned.persistents[3].address + SimFixture::kBufferBytes - 1, last);
  CHECK(last[0] == std::byte{0xff});
}

TEST_CASE("poison shows a use after free, whatever the order") {
  SimFixture sim({.poison = true});
  ProgramBuilder b(sim.kernels);
  b.allocate(0, 3).set(0, 3, 5).free(3).copy(0, 3, 6);
  for (const char* order : {"paced:1", "seed:1", "fifo"}) {
    CHECK(after(sim, b.program, order, 6) == kPoison);
  }
}

TEST_CASE("poison does not reach accesses that the stream orders before the free") {
  SimFixture sim({.poison = true});
  ProgramBuilder b(sim.kernels);
  b.allocate(0, 3).set(0, 3, 5).sync(0).copy(0, 3, 6).record(1, 0).touch(1).free(3);
  b.allocate(0, 4).set(0, 4, 7).record(0, 1).wait(1, 1).copy(1, 4, 8).record(1, 2).wait(0, 2);
  b.free(4);
  for (const char* order : {"paced:1", "seed:1", "seed:2", "seed:3", "fifo"}) {
    CHECK(after(sim, b.program, order, 6) == 5);
    CHECK(sim.value<uint64_t>(8) == 7);
    CHECK(sim.value<uint64_t>(4) == kPoison);
  }
}

TEST_CASE("poison leaves blocks alone whose free was deferred by record_stream") {
  SimFixture sim({.poison = true});
  ProgramBuilder b(sim.kernels);
  b.allocate(0, 3).set(0, 3, 5).record(0, 0).wait(1, 0).record_stream(1, 3).free(3).copy(1, 3, 6);
  ProgramBuilder own(sim.kernels);
  own.allocate(0, 3).set(0, 3, 5).record_stream(0, 3).free(3);
  for (const char* order : {"paced:1", "seed:1", "fifo"}) {
    CHECK(after(sim, b.program, order, 6) == 5);
    CHECK(after(sim, own.program, order, 3) == kPoison);
  }
}

TEST_CASE("graphs are not poisoned") {
  SimFixture sim({.poison = true});
  ProgramBuilder b(sim.kernels);
  b.allocate(0, 3).set(0, 3, 5).free(3);
  const CaptureResult captured = sim.device.capture(b.program, sim.bindings);
  REQUIRE(captured.status == CaptureStatus::ok);
  const auto order = make_order("seed:1");
  sim.device.launch(captured.graph, *order, nullptr);
  sim.device.sync(*order, nullptr);
  CHECK(sim.value<uint64_t>(3) == 5);
}
