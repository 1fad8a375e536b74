// A disk that is really full: a tiny file system of its own. Needs the right to mount one.
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>

#include "recorder/ring/breadcrumb.h"
#include "recorder/ring/ring_file.h"
#include "recorder/tap.h"
#include "tests/recorder/abi_fixture.h"
#include "tests/traces/temp_folder.h"
#include "traces/edit/recover.h"
#include "traces/inspect.h"

namespace redecode {
namespace {

using test::FakeEngine;

constexpr uint32_t kRows = 64;

// A tmpfs of so many bytes, unmounted with the object.
class TinyDisk {
 public:
  explicit TinyDisk(const std::string& size_bytes) {
    std::filesystem::create_directory(path());
    mounted_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, ("size=" + size_bytes).c_str()) == 0;
  }
  ~TinyDisk() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;
  bool mounted() const { return mounted_; }
  std::filesystem::path path() const { return folder_ / "disk"; }
  std::filesystem::path operator/(const char* name) const { return path() / name; }

 private:
  test::TempFolder folder_;
  bool mounted_ = false;
};

constexpr const char* kNoMount = "needs the right to mount a file system";

}  // namespace

TEST_CASE("a full disk: the C library states the loss, and recovery finds the rest") {
  const TinyDisk disk("65536");
  if (!disk.mounted()) SKIP(kNoMount);
  const test::TempFolder elsewhere;
  const std::string rings = (elsewhere / "rings").string();
  std::filesystem::create_directory(rings);
  test::Options o(disk / "t.rdt");
  o.chunk_steps = 64;
  o.ring_dir = rings.c_str();
  rr_recorder* recorder = rr_open(&o, nullptr, 0);
  REQUIRE(recorder != nullptr);
  rr_lane* lane = rr_lane_open(recorder);
  REQUIRE(lane != nullptr);
  FakeEngine engine(kRows);
  engine.arrive(lane);
  uint64_t refused = 0, seen = 0;
  while (refused < 100) {  // until the disk is full, and some more
    REQUIRE(seen < 1'000'000);
    refused += engine.step(lane, seen++) == RR_OK ? 0 : 1;
    if (seen % 64 == 0) ::usleep(500);
  }
  rr_stats stats{};
  CHECK(rr_close(recorder, &stats, sizeof stats) == RR_FAILED);
  CHECK(stats.failed == 1);
  CHECK(stats.steps_seen == seen);
  CHECK(stats.steps_dropped == refused);

  const test::ReadBack file = test::read_back(disk / "t.rdt", engine);
  CHECK(file.end == FileEnd::cut);
  CHECK(file.wrong == 0);
  CHECK(file.steps.size() > 64);
  CHECK(file.steps.size() < seen - refused);
  CHECK(verify_file(disk / "t.rdt").sound);

  const auto left = rings_of(disk / "t.rdt");
  REQUIRE(left.size() == 1);
  const auto whole = elsewhere / "whole.rdt";
  const RecoverResult result =
      recover(disk / "t.rdt", whole, false,
              [&](StepIndex next, RecordTarget& target) { drain_rings(left, next, target); });
  const test::ReadBack back = test::read_back(whole, engine);
  INFO(to_text(result, "t.rdt", "whole.rdt"));
  CHECK(back.wrong == 0);
  CHECK(back.lost == refused);  // what the producer was told, and nothing else
  CHECK(back.steps.size() + back.lost == seen);
}

TEST_CASE("a full disk: no room for the ring or for the header is an error, not a signal") {
  const TinyDisk disk("16384");
  if (!disk.mounted()) SKIP(kNoMount);
  const test::TempFolder elsewhere;
  const std::string here = disk.path().string();
  test::Options o(elsewhere / "t.rdt");
  o.ring_dir = here.c_str();
  rr_recorder* recorder = rr_open(&o, nullptr, 0);
  REQUIRE(recorder != nullptr);
  CHECK(rr_lane_open(recorder) == nullptr);
  rr_close(recorder, nullptr, 0);

  test::write_bytes(disk / "filler", std::vector<uint8_t>(16384));
  test::Options full(disk / "t.rdt");
  char message[256] = "";
  CHECK(rr_open(&full, message, sizeof message) == nullptr);
  CHECK(std::string(message).find("No space left on device") != std::string::npos);
}

TEST_CASE("a full disk: the tap says so, and the file ends with a whole chunk") {
  const TinyDisk disk("65536");
  if (!disk.mounted()) SKIP(kNoMount);
  const auto path = disk / "t.rdt";
  const FakeEngine engine(kRows);
  TraceHeader header;
  header.engine.page_size = FakeEngine::kPageSize;
  TapOptions options;
  options.outputs = false;
  options.flush_every_steps = 64;
  std::string error;
  StepIndex given = 0;
  TapCounters counters;
  {
    Tap tap(TraceWriter(path, header), options);
    while (error.empty()) {
      REQUIRE(given < 1'000'000);
      try {
        tap.scheduled(engine.expected(given));
        ++given;
      } catch (const Error& e) {
        error = e.message();
      }
    }
    CHECK_THROWS_AS(tap.close(), Error);
    counters = tap.counters();
  }
  CHECK(error.find("No space left on device") != std::string::npos);
  CHECK(counters.steps_written + counters.steps_dropped == given + 1);  // the refused one, too
  const test::ReadBack file = test::read_back(path, engine);
  CHECK(file.end == FileEnd::cut);
  CHECK(file.wrong == 0);
  CHECK_FALSE(file.steps.empty());
  CHECK(file.steps.size() <= counters.steps_written);
  CHECK(file.steps.back() + 1 == file.steps.size());
}

}  // namespace redecode
