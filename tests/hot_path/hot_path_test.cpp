// What recording a step may not do on the engine's thread: allocate, or call the system.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "recorder/tap.h"
#include "tests/hot_path/count_allocations.h"
#include "tests/recorder/abi_fixture.h"
#include "tests/traces/temp_folder.h"

namespace redecode {
namespace {

constexpr uint32_t kRows = 64;
constexpr uint64_t kWarmUp = 4096, kCounted = 20000;

// The C library's lane, with steps, pages, outputs and the books that a step may bring.
class LaneRecording {
 public:
  explicit LaneRecording(const std::filesystem::path& path, uint64_t ring_bytes = 64u << 20)
      : engine_(kRows) {
    test::Options options(path);
    options.ring_bytes = ring_bytes;
    const std::string here = path.parent_path().string();
    options.ring_dir = here.c_str();  // gone with the folder, however the process ends
    recorder_ = rr_open(&options, nullptr, 0);
    lane_ = rr_lane_open(recorder_);
    engine_.arrive(lane_);
    for (uint32_t i = 0; i < kRows; ++i) {
      tokens_.push_back(static_cast<int32_t>(i));
      sums_.push_back(static_cast<float>(i));
      top_.push_back(1.0f);
    }
  }
  ~LaneRecording() {
    if (recorder_ != nullptr) rr_close(recorder_, nullptr, 0);
  }
  void step() {
    if (next_ != 0 && next_ % 64 == 0) {
      if (visitor_ != kRows) rr_depart(lane_, visitor_ - 1, RR_FINISHED);
      rr_arrival arrival;
      rr_arrival_init(&arrival, sizeof arrival);
      arrival.request = visitor_++;
      arrival.prompt_tokens = 1;
      rr_arrive(lane_, &arrival);
    }
    engine_.step(lane_, next_, RR_TAKE_CLOCK);
    rr_output_info outputs;
    rr_output_info_init(&outputs, sizeof outputs);
    outputs.rows = kRows;
    outputs.token = {tokens_.data(), 0, 4};
    outputs.log_sum_exp = sums_.data();
    outputs.top_count = 1;
    outputs.top_tokens = tokens_.data();
    outputs.top_logits = top_.data();
    rr_outputs(lane_, &outputs);
    ++next_;
  }
  // Steps of which the recorder knows: written or counted as dropped.
  uint64_t close() {
    rr_stats stats{};
    rr_close(std::exchange(recorder_, nullptr), &stats, sizeof stats);
    return stats.steps_written + stats.steps_dropped;
  }

 private:
  test::FakeEngine engine_;
  rr_recorder* recorder_ = nullptr;
  rr_lane* lane_ = nullptr;
  uint64_t next_ = 0;
  uint32_t visitor_ = kRows;  // the next request that comes and goes without rows
  std::vector<int32_t> tokens_;
  std::vector<float> sums_, top_;
};

// The engine's own tap; what does not fit is dropped, and its loss written down, without a system
// call either.
class TapRecording {
 public:
  explicit TapRecording(const std::filesystem::path& path) {
    TraceHeader header;
    header.model.vocab = 1000;
    header.engine = {.page_size = 16,
                     .page_count = 1u << 20,
                     .max_batch_rows = kRows,
                     .max_seq_len = 1u << 20,
                     .buckets = {}};
    TapOptions options;
    options.ring_records = 64;
    options.when_full = WhenFull::drop;
    tap_ = std::make_unique<Tap>(TraceWriter(path, header, {}, true), options);
    for (uint32_t i = 0; i < kRows; ++i) {
      step_.rows.push_back({i, 0, 1, 16 + i, true});
      RowOutput& row = output_.rows.emplace_back();
      row.row = row.request = i;
      row.top.resize(kTopLogits);
    }
  }
  void step() {
    step_.index = output_.step = next_++;
    tap_->scheduled(step_);
    tap_->produced(output_);
  }
  uint64_t close() {
    tap_->close();
    const TapCounters counters = tap_->counters();
    REQUIRE(counters.steps_dropped == counters.steps_in_gaps);
    return counters.steps_written + counters.steps_in_gaps;
  }

 private:
  Step step_;
  StepOutput output_;
  std::unique_ptr<Tap> tap_;
  StepIndex next_ = 0;
};

template <class Recording>
uint64_t allocations_in_counted_steps(Recording& recording) {
  // The ring's slots of a tap grow when they are first used.
  for (uint64_t i = 0; i < kWarmUp; ++i) {
    recording.step();
    if (i % 16 == 0) std::this_thread::yield();
  }
  const uint64_t before = test::allocations_of_this_thread();
  for (uint64_t i = 0; i < kCounted; ++i) recording.step();
  return test::allocations_of_this_thread() - before;
}

// From here on any system call of this thread but exit_group ends the process with SIGSYS.
bool forbid_system_calls() {
  std::array filter = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

constexpr int kNoFilter = 77;

// Exit status of a process whose thread may call nothing while `act` runs, or minus a signal.
int status_without_system_calls(const std::function<std::function<void()>()>& prepare) {
  const pid_t child = fork();
  if (child == 0) {
    const std::function<void()> act = prepare();
    if (!forbid_system_calls()) _exit(kNoFilter);
    act();
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <class Recording>
int status_of_recording(const std::filesystem::path& path) {
  return status_without_system_calls([&]() -> std::function<void()> {
    auto* recording = new Recording(path);  // lives until the process ends
    for (uint64_t i = 0; i < kWarmUp; ++i) recording->step();
    return [recording] {
      for (uint64_t i = 0; i < kCounted; ++i) recording->step();
    };
  });
}

}  // namespace

TEST_CASE("the counter sees every door to memory") {
  if (!REDECODE_COUNTS_ALLOCATIONS) SKIP("a sanitizer's malloc stands there");
  const uint64_t before = test::allocations_of_this_thread();
  auto number = std::make_unique<int>(1);
  std::vector<int> numbers(100, *number);
  void* volatile plain = std::malloc(10);
  std::free(plain);
  CHECK(test::allocations_of_this_thread() == before + 3);
}

TEST_CASE("recording a step through the C library allocates nothing") {
  if (!REDECODE_COUNTS_ALLOCATIONS) SKIP("a sanitizer's malloc stands there");
  const test::TempFolder folder;
  LaneRecording recording(folder / "t.rdt");
  CHECK(allocations_in_counted_steps(recording) == 0);
  CHECK(recording.close() == kWarmUp + kCounted);
}

TEST_CASE("recording a step through the tap allocates nothing once its ring has grown") {
  if (!REDECODE_COUNTS_ALLOCATIONS) SKIP("a sanitizer's malloc stands there");
  const test::TempFolder folder;
  TapRecording recording(folder / "t.rdt");
  CHECK(allocations_in_counted_steps(recording) == 0);
  CHECK(recording.close() == kWarmUp + kCounted);
}

TEST_CASE("a thread that may call nothing dies of a call") {
  const int status = status_without_system_calls([] { return [] { syscall(SYS_getppid); }; });
  if (status == kNoFilter) SKIP("this system has no seccomp filters");
  CHECK(status == -SIGSYS);
}

TEST_CASE("recording a step makes no system call") {
  if (!REDECODE_COUNTS_ALLOCATIONS) SKIP("a sanitizer may call the system at any time");
  const test::TempFolder folder;
  const int lane = status_of_recording<LaneRecording>(folder / "lane.rdt");
  if (lane == kNoFilter) SKIP("this system has no seccomp filters");
  CHECK(lane == 0);
  CHECK(status_of_recording<TapRecording>(folder / "tap.rdt") == 0);
}

// For strace, see docs/evidence/recording.md: what stands between two calls of getppid.
TEST_CASE("steps between two marks", "[.marks]") {
  const test::TempFolder folder;
  LaneRecording recording(folder / "t.rdt");
  for (uint64_t i = 0; i < kWarmUp; ++i) recording.step();
  syscall(SYS_getppid);
  for (uint64_t i = 0; i < kCounted; ++i) recording.step();
  syscall(SYS_getppid);
  recording.close();
}

}  // namespace redecode
