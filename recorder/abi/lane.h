// recorder/abi/lane.h - Lane: the producer's side of one ring; behind rr_lane.
//
// No call allocates, locks, makes a system call or throws, but under Policy::block with a full
// ring, which sleeps.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "recorder/abi/departed.h"
#include "recorder/abi/redecode_record.h"
#include "recorder/ring/ring_record.h"
#include "recorder/ring/shared_ring.h"

namespace redecode {

enum class Policy : uint8_t { drop, block, keep_last };

// What lanes and the consumer of one recorder share.
struct RecorderShared {
  std::atomic<bool> failed{false};              // the file cannot be written any more
  std::atomic<const void*> step_lane{nullptr};  // the lane that steps come from
  std::atomic<uint64_t> newest_step{UINT64_MAX};
  std::atomic<bool> triggered{false};
  Policy policy = Policy::drop;
  uint32_t block_timeout_us = 0;
  int64_t trigger_token = -1;  // -1: none
  bool trigger_nonfinite = false;
  uint64_t trigger_step_ns = 0;  // 0: none
  Departed departed;             // for good, not preempted
};

class Lane {
 public:
  Lane(std::unique_ptr<SharedRing> ring, RecorderShared& shared)
      : ring_(std::move(ring)), shared_(shared) {}

  // As the calls of redecode_record.h of these names.
  int depart(uint32_t request, int reason);
  int arrive(const rr_arrival& arrival);
  int page(uint32_t request, uint32_t index, uint32_t page, bool shared);
  int event(int kind, uint32_t request, uint32_t a, uint32_t b, const char* text);
  int step(const rr_step_info& info);
  int step_begin(const rr_step_info& info);
  int step_rows(uint32_t count, const rr_column& request, const rr_column& position,
                const rr_column& token, const rr_column& slot, const uint8_t* wants_output);
  int step_end();
  int outputs(const rr_output_info& info);

  // Commits what was lost and not said yet, if there is room; called when no producer runs any
  // more.
  void finish();

  SharedRing& ring() { return *ring_; }
  const SharedRing& ring() const { return *ring_; }

 private:
  struct Open {
    uint8_t* record = nullptr;  // reserved, not committed
    uint64_t size_bytes = 0;
    uint32_t rows = 0, filled = 0;
    uint64_t index = 0;
    bool dropped = false;  // its end counts it
    bool active = false;
  };

  int claim_steps();
  uint64_t next_index(const rr_step_info& info);
  int open_step(const rr_step_info& info, bool has_wants);
  uint8_t* room(uint64_t size_bytes, int& result);
  uint8_t* wait_for_room(uint64_t size_bytes, int& result);
  bool say_loss();
  void lose(uint64_t bytes, bool book);
  void lose_step(uint64_t index, uint64_t bytes);
  template <class Record>
  int put(const Record& record, bool book);
  void head(uint8_t* at, RecordKind kind, uint64_t size_bytes);
  void watch_step(uint64_t time_ns);
  void watch_outputs(const rr_output_info& info);

  std::unique_ptr<SharedRing> ring_;
  RecorderShared& shared_;
  Open open_;
  uint64_t sequence_ = 0;
  uint64_t next_step_ = 0;
  uint64_t last_time_ns_ = 0;
  bool book_lost_ = false;  // a departure, arrival or page of the next step was dropped
  LossRecord loss_{};       // since the last loss record
  bool has_loss_ = false;
};

}  // namespace redecode
