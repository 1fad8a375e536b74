#include "traces/validate.h"

#include <algorithm>
#include <cmath>

#include "traces/error.h"

namespace redecode {
namespace {

std::string request_text(RequestId request) { return "request " + std::to_string(request); }

bool in_range(const Sampling& s) {
  return std::isfinite(s.temperature) && s.temperature >= 0.0f && s.top_k >= 0 && s.top_p > 0.0f &&
         s.top_p <= 1.0f && s.min_p >= 0.0f && s.min_p < 1.0f;
}

}  // namespace

StepValidator::StepValidator(const ModelIdentity& model, const EngineSettings& engine,
                             std::string source)
    : model_(model), engine_(engine), source_(std::move(source)) {
  const auto& buckets = engine_.buckets;
  if (std::adjacent_find(buckets.begin(), buckets.end(), std::greater_equal<>()) != buckets.end() ||
      (!buckets.empty() && buckets.front() == 0))
    throw Error(ErrorCode::corrupt, "buckets of the header do not ascend from 1", source_);
  if (uint64_t{engine_.page_size} * engine_.page_count > (uint64_t{1} << 32))
    throw Error(ErrorCode::corrupt, "header has more KV slots than 32 bits can number", source_);
}

void StepValidator::fail(const Step& step, const std::string& what) const {
  throw Error(ErrorCode::corrupt, what,
              (source_.empty() ? "" : source_ + ": ") + "step " + std::to_string(step.index));
}

void StepValidator::add(const Step& step) {
  if (last_index_ && step.index != *last_index_ + 1)
    fail(step, "follows step " + std::to_string(*last_index_));
  last_index_ = step.index;
  check_departures(step);
  check_arrivals(step);
  check_pages(step);
  check_sizes(step);
  check_rows(step);
}

void StepValidator::start(const Keyframe& keyframe) {
  for (const RunningRequest& r : keyframe.running) {
    RequestState& state = running_[r.arrival.request];
    state.next_position = r.next_position;
    state.whole = r.complete;
    after_gap_ |= !r.complete;
    for (size_t i = 0; i < r.pages.size(); ++i)
      if (r.pages[i] != 0) state.pages[static_cast<uint32_t>(i)] = r.pages[i];
  }
  preempted_.insert(keyframe.preempted.begin(), keyframe.preempted.end());
  if (keyframe.next_step != 0) last_index_ = keyframe.next_step - 1;
}

void StepValidator::skip(const Gap& gap) {
  if (last_index_ && gap.first != *last_index_ + 1)
    throw Error(ErrorCode::corrupt,
                "gap of steps " + std::to_string(gap.first) + ".." + std::to_string(gap.last) +
                    " follows step " + std::to_string(*last_index_),
                source_);
  last_index_ = gap.last;
  after_gap_ = true;
  for (auto& [request, state] : running_) state.whole = false;
}

void StepValidator::check_sizes(const Step& step) {
  const size_t rows = step.rows.size() + step.rows_left_out;
  if (step.bucket != 0) {
    if (!engine_.buckets.empty() &&
        !std::binary_search(engine_.buckets.begin(), engine_.buckets.end(), step.bucket))
      fail(step, "bucket " + std::to_string(step.bucket) + " is none of the header's");
    if (rows > step.bucket)
      fail(step, std::to_string(rows) + " rows in bucket " + std::to_string(step.bucket));
  }
  if (step.phase == Phase::decode && engine_.max_batch_rows != 0 && rows > engine_.max_batch_rows)
    fail(step, std::to_string(rows) + " decode rows, at most " +
                   std::to_string(engine_.max_batch_rows) + " allowed");
}

void StepValidator::check_departures(const Step& step) {
  for (const Departure& d : step.departures) {
    if (running_.erase(d.request) == 0 && !after_gap_)
      fail(step, request_text(d.request) + " departs, but is not running");
    (d.reason == DepartureReason::preempted ? preempted_ : gone_).insert(d.request);
  }
}

void StepValidator::check_arrivals(const Step& step) {
  for (const Arrival& a : step.arrivals) {
    const std::string who = request_text(a.request);
    if (a.request == kNoRequest) fail(step, "an arrival without a request");
    const auto found = running_.find(a.request);
    if (found != running_.end() && found->second.whole)
      fail(step, who + " arrives, but is running already");
    if (gone_.contains(a.request)) fail(step, who + " arrives after it was done");
    const bool was_preempted = preempted_.erase(a.request) != 0;
    if (was_preempted != a.resumed && !after_gap_)
      fail(step, who + (a.resumed ? " is resumed, but was not preempted"
                                  : " arrives anew, but was only preempted"));
    if (a.cached_tokens > a.prompt_tokens)
      fail(step, who + " has more cached tokens than prompt tokens");
    if (!in_range(a.sampling)) fail(step, who + " has sampling values out of range");
    running_[a.request] = RequestState();
    running_[a.request].next_position = a.cached_tokens;
  }
}

void StepValidator::check_pages(const Step& step) {
  for (const PageChange& c : step.page_changes) {
    auto request = running_.find(c.request);
    if (request == running_.end() && after_gap_) {
      request = running_.emplace(c.request, RequestState()).first;
      request->second.whole = false;
    }
    if (request == running_.end())
      fail(step, request_text(c.request) + " gets a page, but is not running");
    if (c.page == 0) fail(step, request_text(c.request) + " gets the dummy page 0");
    if (engine_.page_count != 0 && c.page >= engine_.page_count)
      fail(step, "page " + std::to_string(c.page) + " of " + std::to_string(engine_.page_count));
    if (engine_.max_seq_len != 0 && engine_.page_size != 0 &&
        uint64_t{c.index} * engine_.page_size >= engine_.max_seq_len)
      fail(step, "page table entry " + std::to_string(c.index) + " lies behind max_seq_len");
    request->second.pages[c.index] = c.page;
  }
}

void StepValidator::check_rows(const Step& step) {
  for (size_t i = 0; i < step.rows.size(); ++i) check_row(step, i);
}

void StepValidator::check_row(const Step& step, size_t index) {
  const Row& row = step.rows[index];
  const auto bad = [&](const std::string& what) {
    fail(step, "row " + std::to_string(index) + ": " + what);
  };
  auto found = running_.find(row.request);
  if (found == running_.end() && after_gap_) {
    found = running_.emplace(row.request, RequestState()).first;
    found->second.whole = false;
  }
  if (found == running_.end()) bad(request_text(row.request) + " is not running");
  RequestState& state = found->second;
  const bool continues = index > 0 && step.rows[index - 1].request == row.request;
  if (state.last_step == step.index && !continues)
    bad("rows of " + request_text(row.request) + " do not stand together");
  if (continues && step.phase == Phase::decode)
    bad("a second row of " + request_text(row.request) + " in a decode step");
  const bool adopted = !state.whole;
  if (row.position != state.next_position && !adopted)
    bad("position " + std::to_string(row.position) + " where " +
        std::to_string(state.next_position) + " is next");
  if (engine_.max_seq_len != 0 && row.position >= engine_.max_seq_len)
    bad("position " + std::to_string(row.position) + " of at most " +
        std::to_string(engine_.max_seq_len));
  if (row.token < 0 || (model_.vocab != 0 && static_cast<uint32_t>(row.token) >= model_.vocab))
    bad("token " + std::to_string(row.token) + " is not in the vocabulary of " +
        std::to_string(model_.vocab));
  if (engine_.page_size != 0) {
    const uint32_t page_index = row.position / engine_.page_size;
    if (adopted) state.pages[page_index] = row.slot / engine_.page_size;
    const auto page = state.pages.find(page_index);
    if (page == state.pages.end())
      bad("page table entry " + std::to_string(page_index) + " is not set");
    const uint64_t slot =
        uint64_t{page->second} * engine_.page_size + row.position % engine_.page_size;
    if (slot != row.slot)
      bad("slot " + std::to_string(row.slot) + " where the page table says " +
          std::to_string(slot));
  }
  state.next_position = row.position + 1;
  state.last_step = step.index;
}

}  // namespace redecode
