#include "traces/keyframe.h"

namespace redecode {
namespace {

// Page tables are dense in these bounds; entries beyond them are kept one by one.
constexpr uint32_t kMostSkipped = 4096;
constexpr uint64_t kMostDenseEntries = uint64_t{1} << 22;

}  // namespace

void ScheduleState::clear() {
  running_.clear();
  preempted_.clear();
  next_step_ = 0;
  after_gap_ = false;
  dense_entries_ = 0;
}

void ScheduleState::restore(const Keyframe& keyframe) {
  clear();
  next_step_ = keyframe.next_step;
  for (const RunningRequest& request : keyframe.running) {
    Running& r = running_[request.arrival.request];
    r.request = request;
    dense_entries_ += request.pages.size();
  }
  for (RequestId request : keyframe.preempted) preempted_[request] = true;
}

Keyframe ScheduleState::keyframe() const {
  Keyframe out;
  out.next_step = next_step_;
  out.running.reserve(running_.size());
  for (const auto& [id, r] : running_) out.running.push_back(r.request);
  for (const auto& [id, preempted] : preempted_) out.preempted.push_back(id);
  return out;
}

void ScheduleState::apply(const Step& step) {
  apply_books(step);
  for (const Row& row : step.rows) advance(running(row.request), row.position, row.slot);
  next_step_ = step.index + 1;
  after_gap_ = false;
}

void ScheduleState::apply_books(const Step& step) {
  for (const Departure& d : step.departures) {
    if (const auto found = running_.find(d.request); found != running_.end()) {
      dense_entries_ -= found->second.request.pages.size();
      running_.erase(found);
    }
    if (d.reason == DepartureReason::preempted) preempted_[d.request] = true;
  }
  for (const Arrival& a : step.arrivals) {
    Running& r = running_[a.request];
    r.request.arrival = a;
    r.request.next_position = a.cached_tokens;
    r.request.complete = true;
    r.page_left = 0;
    preempted_.erase(a.request);
  }
  for (const PageChange& c : step.page_changes) {
    Running& r = running(c.request);
    r.page_left = 0;
    set_page(r, c.index, c.page);
  }
}

void ScheduleState::apply_gap(StepIndex last) {
  for (auto& [id, r] : running_) r.request.complete = false;
  next_step_ = last + 1;
  after_gap_ = true;
}

const RunningRequest* ScheduleState::find(RequestId request) const {
  const auto found = running_.find(request);
  return found == running_.end() ? nullptr : &found->second.request;
}

ScheduleState::Running& ScheduleState::running(RequestId request) {
  const auto [at, is_new] = running_.try_emplace(request);
  if (is_new) {
    at->second.request.arrival.request = request;
    at->second.request.complete = false;
  }
  return at->second;
}

uint32_t ScheduleState::expected_slot(const Running& r, uint32_t position) const {
  if (position == r.request.next_position && r.page_left != 0) return r.next_slot;
  if (page_size_ == 0) return 0;
  const uint32_t index = position / page_size_;
  PageId page = 0;
  if (index < r.request.pages.size()) {
    page = r.request.pages[index];
  } else if (!r.far_pages.empty()) {
    const auto found = r.far_pages.find(index);
    if (found != r.far_pages.end()) page = found->second;
  }
  return page == 0 ? 0 : page * page_size_ + position % page_size_;
}

void ScheduleState::jump(Running& r, uint32_t position, uint32_t slot) {
  r.request.next_position = position + 1;
  r.page_left = 0;
  if (page_size_ == 0) return;
  const uint32_t index = position / page_size_, offset = position % page_size_;
  set_page(r, index, slot / page_size_);
  if (slot % page_size_ != offset || slot < page_size_) return;
  r.page_left = page_size_ - 1 - offset;
  r.next_slot = slot + 1;
}

void ScheduleState::set_page(Running& r, uint32_t index, PageId page) {
  std::vector<PageId>& pages = r.request.pages;
  if (index < pages.size()) {
    pages[index] = page;
  } else if (index - pages.size() <= kMostSkipped && dense_entries_ < kMostDenseEntries) {
    dense_entries_ += index + 1 - pages.size();
    pages.resize(index + 1, 0);
    pages[index] = page;
  } else {
    r.far_pages[index] = page;
  }
}

}  // namespace redecode
