// traces/keyframe.h - Keyframe and ScheduleState: which requests run at a point of a trace, and
// where each of them is.
//
// A keyframe opens every chunk, so that no chunk needs the one before it. Steps move it on.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "traces/step.h"

namespace redecode {

struct RunningRequest {
  Arrival arrival;             // arrival.request names it
  uint32_t next_position = 0;  // of its next row; arrival.cached_tokens before its first
  std::vector<PageId> pages;   // by page table index; 0: not known
  // False when steps of this request are missing: it was running where a gap ended.
  bool complete = true;
  bool operator==(const RunningRequest&) const = default;
};

struct Keyframe {
  StepIndex next_step = 0;
  std::vector<RunningRequest> running;  // request ascending
  std::vector<RequestId> preempted;     // ascending; these may be resumed
  bool operator==(const Keyframe&) const = default;
};

// The same as a thing that steps change. Total: any step can be applied, so that readers of odd
// traces can go on; whether a step makes sense is for StepValidator to say.
class ScheduleState {
 public:
  // A request that runs, and what is expected of its next row.
  struct Running {
    RunningRequest request;
    uint32_t next_slot = 0;                // expected of the next row, while page_left is not 0
    uint32_t page_left = 0;                // rows until the page ends; 0: look the page up
    uint32_t tag = 0;                      // for codecs
    std::map<uint32_t, PageId> far_pages;  // entries too far out for RunningRequest::pages
  };

  explicit ScheduleState(uint32_t page_size) : page_size_(page_size) {}
  ScheduleState(ScheduleState&&) = default;
  ScheduleState& operator=(ScheduleState&&) = default;

  void clear();
  void restore(const Keyframe& keyframe);
  // Cost: O(pages of running requests).
  Keyframe keyframe() const;
  // Departures, arrivals, page changes, rows. A row of a request that is not running adopts it
  // (complete = false where there was a gap). Cost: O(log requests) a row.
  void apply(const Step& step);
  // Steps are missing up to `last`: all running requests become incomplete.
  void apply_gap(StepIndex last);
  const RunningRequest* find(RequestId request) const;  // nullptr when it does not run
  StepIndex next_step() const { return next_step_; }

  // The parts of apply, for codecs that look at each row before it counts.
  void apply_books(const Step& step);
  Running& running(RequestId request);  // adopts it; the reference holds until it departs
  // Slot that the page table puts `position` at; 0 where it does not say.
  uint32_t expected_slot(const Running& running, uint32_t position) const;
  void advance(Running& running, uint32_t position, uint32_t slot) {
    if (position == running.request.next_position && running.page_left != 0 &&
        slot == running.next_slot) {
      ++running.request.next_position;
      ++running.next_slot;
      --running.page_left;
      return;
    }
    jump(running, position, slot);
  }
  void set_next_step(StepIndex step) { next_step_ = step; }

 private:
  void jump(Running& running, uint32_t position, uint32_t slot);
  void set_page(Running& running, uint32_t index, PageId page);

  uint32_t page_size_;
  StepIndex next_step_ = 0;
  bool after_gap_ = false;
  uint64_t dense_entries_ = 0;
  std::map<RequestId, Running> running_;
  std::map<RequestId, bool> preempted_;
};

}  // namespace redecode
