#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <new>

#include "recorder/ring/breadcrumb.h"
#include "recorder/ring/ring_file.h"
#include "tests/recorder/abi_fixture.h"
#include "tests/traces/temp_folder.h"
#include "traces/edit/recover.h"
#include "traces/inspect.h"
#include "traces/random.h"

namespace redecode {
namespace {

using test::FakeEngine;

// What the child says of itself, in memory that outlives it.
struct Shared {
  std::atomic<uint64_t> returned{0};  // calls of rr_step that returned
  std::atomic<uint64_t> dropped{0};   // of them, said to be dropped
};

Shared& shared_memory() {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return *new (memory) Shared();
}

[[noreturn]] void record_until_killed(const std::filesystem::path& path, uint64_t ring_bytes,
                                      Shared& shared) {
  test::Options o(path);
  o.ring_bytes = ring_bytes;
  o.chunk_steps = 256;
  rr_recorder* recorder = rr_open(&o, nullptr, 0);
  rr_lane* lane = recorder == nullptr ? nullptr : rr_lane_open(recorder);
  if (lane == nullptr) ::_exit(3);
  FakeEngine engine(64);
  engine.arrive(lane);
  for (uint64_t i = 0; i < 2'000'000; ++i) {
    if (engine.step(lane, i) != RR_OK) shared.dropped.fetch_add(1);
    shared.returned.fetch_add(1);
  }
  ::_exit(4);
}

void kill_once(uint64_t seed, uint64_t ring_bytes) {
  const test::TempFolder folder;
  const auto path = folder / "t.rdt";
  Shared& shared = shared_memory();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) record_until_killed(path, ring_bytes, shared);
  while (shared.returned.load() == 0) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, WNOHANG) == 0);
  }
  RandomSequence random(seed);
  ::usleep(static_cast<useconds_t>(random.below(30'000)));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));

  const uint64_t returned = shared.returned.load(), dropped = shared.dropped.load();
  const auto rings = rings_of(path);
  REQUIRE(rings.size() == 1);
  DrainResult drained;
  const RecoverResult result = recover(
      path, folder / "whole.rdt", false,
      [&](StepIndex next, RecordTarget& target) { drained = drain_rings(rings, next, target); });
  std::filesystem::remove(rings[0]);
  INFO("seed " << seed << ": " << returned << " returned, " << dropped << " dropped");
  INFO(to_text(result, path.string(), "whole.rdt"));
  CHECK(drained.unreadable_bytes == 0);
  CHECK(drained.steps_seen >= returned);
  CHECK(drained.steps_seen <= returned + 1);
  const FakeEngine engine(64);
  const test::ReadBack back = test::read_back(folder / "whole.rdt", engine);
  CHECK(back.wrong == 0);
  CHECK(back.lost == result.steps_lost);
  // The last call may have been cut off anywhere: its step is there, or lost, or was never seen.
  CHECK(back.steps.size() + back.lost >= returned);
  CHECK(back.steps.size() + back.lost <= returned + 1);
  CHECK(back.lost >= dropped);
  CHECK(back.lost <= dropped + 1);
  const VerifyResult verified = verify_file(folder / "whole.rdt");
  INFO(to_text(verified));
  CHECK(verified.sound);
  ::munmap(&shared, sizeof(Shared));
}

}  // namespace

TEST_CASE("a recorder that is killed loses nothing that it had taken") {
  for (uint64_t seed = 0; seed < 10; ++seed) kill_once(seed, uint64_t{8} << 20);
}

TEST_CASE("a recorder that drops and is killed states exactly what was lost") {
  for (uint64_t seed = 100; seed < 106; ++seed) kill_once(seed, 1);
}

TEST_CASE("killed at 200 moments", "[slow]") {
  for (uint64_t seed = 1000; seed < 1200; ++seed)
    kill_once(seed, seed % 4 == 0 ? 1 : uint64_t{4} << 20);
}

}  // namespace redecode
