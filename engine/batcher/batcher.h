// engine/batcher/batcher.h - the scheduler of a serving engine: requests in, steps out.
//
// Continuous batching over paged KV with chunked prefill, prefix sharing and preemption. The order
// of calls and their arguments decide every step; time, threads and addresses have no part in it.
//
//   submit*  ->  next(step)  ->  (run the step)  ->  update(output)  ->  take_finished  -> again
//
// Policy
// - First come, first served: a request never overtakes one submitted before it. It is admitted
//   (its Arrival) when max_running allows and the pages of its whole prompt and one more token are
//   to be had; it then holds the pages of its prompt at once, and gets one more whenever decode
//   needs it.
// - Prefill and decode steps take turns while there is work for both; a prefill step takes up to
//   prefill_chunk_rows rows from running prompts, oldest first, then from newly admitted ones. With
//   `mixed`, one step holds the decode rows of all, then prompt rows up to the same budget.
// - Decode rows stand in order of submission. A decode step names the smallest bucket that holds
//   it, or 0; prefill and mixed steps always have bucket 0.
// - Prefix sharing: full pages, of prompts and outputs alike, are found on admission by the chained
//   hash of their tokens. cached_tokens is a multiple of page_size and less than the prompt, so
//   that at least one prompt row runs.
// - When decode needs a page and none is to be had, the newest running request is preempted: it
//   departs, its pages are dropped (full ones stay cached until the room is needed) and it comes
//   back first in line as an Arrival with resumed set, its output so far counted as prompt;
//   max_tokens and sampling stay as asked. Nobody is admitted in a step that preempts.
// - The departure of a request that ended is in the step built next. The last ones wait for
//   departures_only: next never builds a step without rows.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/batcher/options.h"
#include "engine/batcher/page_allocator.h"
#include "traces/output.h"
#include "traces/step.h"
#include "traces/traffic.h"

namespace redecode {

// A request that ended. `output` holds every sampled token, the stop token included.
struct FinishedRequest {
  Request request;
  std::vector<int32_t> output;
  RequestEnd end = RequestEnd::length;
};

struct BatcherCounters {
  uint64_t submitted = 0, finished = 0, preemptions = 0;
  uint64_t prompt_tokens = 0;  // of all admissions, resumed ones too
  uint64_t cached_tokens = 0;  // of those, found in the prefix cache
  uint64_t prompt_rows = 0;    // scheduled, the rest of them
  uint64_t output_tokens = 0;  // sampled
};

class Batcher {
 public:
  // Errors: usage, see checked.
  explicit Batcher(const BatcherOptions& options);
  ~Batcher();

  // Queues a request. It ends at once, without a step, as too_long when its prompt leaves no room
  // for a token within max_seq_len or when the pages cannot hold it even alone, and as failed when
  // its prompt is empty, asks for no token, or holds a token outside the vocabulary. Errors: CHECK
  // when the id is in use. Cost: O(prompt).
  void submit(Request request);

  // Builds the next step. False, with `step` untouched, when no row can run: nothing was submitted
  // that has not ended. Errors: CHECK when the step before was not updated.
  bool next(Step& step);
  // Builds a step of the departures that wait, without rows; false when none does. For whoever
  // needs the last departures in the trace, or shuts down.
  bool departures_only(Step& step);

  // Takes the result of the step that next built: one row output for each row with wants_output, in
  // row order. A token that ends its request (stop token, max_tokens, max_seq_len) frees its pages;
  // one outside the vocabulary ends it as failed. Errors: CHECK when the output is not that step's.
  void update(const StepOutput& output);

  // Ends a request that waits or runs; its departure is in the next step. False when it is unknown.
  // Errors: CHECK between next and update.
  bool cancel(RequestId request);

  // Requests that ended since the last call, in the order in which they ended.
  std::vector<FinishedRequest> take_finished();

  // Neither waiting nor running requests; departures may still wait.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  uint32_t waiting() const { return static_cast<uint32_t>(waiting_.size()); }
  uint32_t running() const { return static_cast<uint32_t>(running_.size()); }
  const PageAllocator& pages() const { return pages_; }
  const BatcherOptions& options() const { return options_; }  // as checked
  const BatcherCounters& counters() const { return counters_; }

 private:
  struct Sequence;
  struct Prefix;  // the cached pages that a sequence begins with
  using SequencePtr = std::unique_ptr<Sequence>;

  std::optional<RequestEnd> refusal(const Request& request) const;
  uint64_t longest_kv_tokens(const Request& request) const;
  uint32_t pages_for(uint64_t tokens) const;

  bool decode_pending() const;
  bool prefill_pending() const;
  void add_decode_rows(Step& step);
  void add_prefill_rows(Step& step, uint32_t budget_rows, bool admit);
  uint32_t add_chunk(Step& step, Sequence& sequence, uint32_t budget_rows);
  std::optional<PageId> allocate_or_preempt(Step& step, size_t running_index);
  void preempt_newest(Step& step);
  Prefix match_prefix(const Sequence& sequence) const;
  bool fits(const Sequence& sequence, const Prefix& prefix) const;
  bool admit_head(Step& step);
  uint32_t bucket_for(size_t rows) const;
  void give(Step& step, Sequence& sequence, PageId page, bool shared);

  void register_full_pages(Sequence& sequence);
  std::optional<RequestEnd> append(Sequence& sequence, int32_t token);
  void drop_pages(Sequence& sequence);
  void end(SequencePtr sequence, RequestEnd how, bool departs);

  BatcherOptions options_;
  PageAllocator pages_;
  std::deque<SequencePtr> waiting_;
  std::vector<SequencePtr> running_;  // in order of submission; those in prefill are the last ones
  std::set<RequestId> live_;          // waiting or running
  std::vector<Departure> departures_;
  std::vector<FinishedRequest> finished_;
  BatcherCounters counters_;
  StepIndex next_index_ = 0;
  bool in_flight_ = false;
  bool last_was_prefill_ = false;
};

}  // namespace redecode
