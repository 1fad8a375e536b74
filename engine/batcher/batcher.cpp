#include "engine/batcher/batcher.h"

#include <algorithm>
#include <span>
#include <utility>

#include "traces/check.h"

namespace redecode {

// A request on its way: its tokens so far and the KV pages that hold their keys and values.
struct Batcher::Sequence {
  Request request;
  std::vector<int32_t> tokens;  // prompt, then output
  std::vector<PageId> pages;    // page table
  uint32_t prefill_target = 0;  // tokens that are prompt in this admission
  uint32_t computed = 0;        // leading tokens whose KV is written
  uint32_t scheduled = 0;       // rows in the step in flight
  uint32_t chained_pages = 0;   // leading full pages that `chain` covers
  Digest chain = kChainStart;
  bool resumed = false;

  uint32_t length() const { return static_cast<uint32_t>(tokens.size()); }
  uint32_t output_tokens() const { return length() - static_cast<uint32_t>(request.prompt.size()); }
  bool prefilling() const { return computed < prefill_target; }
  std::span<const int32_t> page_tokens(uint32_t index, uint32_t page_size) const {
    return std::span(tokens).subspan(size_t{index} * page_size, page_size);
  }
};

struct Batcher::Prefix {
  std::vector<PageId> pages;
  Digest chain = kChainStart;
};

Batcher::Batcher(const BatcherOptions& options)
    : options_(checked(options)), pages_(options_.page_count, options_.page_size) {}

Batcher::~Batcher() = default;

uint32_t Batcher::pages_for(uint64_t tokens) const {
  return static_cast<uint32_t>((tokens + options_.page_size - 1) / options_.page_size);
}

uint64_t Batcher::longest_kv_tokens(const Request& request) const {
  // The last token sampled is never an input, so its key and value are never written.
  const uint64_t longest = uint64_t{request.prompt.size()} + request.max_tokens;
  return std::min<uint64_t>(longest, options_.max_seq_len) - 1;
}

std::optional<RequestEnd> Batcher::refusal(const Request& request) const {
  if (request.prompt.empty() || request.max_tokens == 0) return RequestEnd::failed;
  for (const int32_t token : request.prompt)
    if (token < 0 || (options_.vocab != 0 && static_cast<uint32_t>(token) >= options_.vocab))
      return RequestEnd::failed;
  const uint64_t prompt = request.prompt.size();
  if (prompt + 1 > options_.max_seq_len) return RequestEnd::too_long;
  if (pages_for(longest_kv_tokens(request)) > options_.page_count - 1) return RequestEnd::too_long;
  return std::nullopt;
}

void Batcher::submit(Request request) {
  REDECODE_CHECK(request.id != kNoRequest);
  REDECODE_CHECK(live_.insert(request.id).second);
  ++counters_.submitted;
  auto sequence = std::make_unique<Sequence>();
  sequence->request = std::move(request);
  if (const auto refused = refusal(sequence->request)) {
    end(std::move(sequence), *refused, false);
    return;
  }
  sequence->tokens = sequence->request.prompt;
  waiting_.push_back(std::move(sequence));
}

bool Batcher::cancel(RequestId request) {
  REDECODE_CHECK(!in_flight_);
  const auto is_it = [&](const SequencePtr& s) { return s->request.id == request; };
  if (const auto it = std::find_if(running_.begin(), running_.end(), is_it); it != running_.end()) {
    SequencePtr sequence = std::move(*it);
    running_.erase(it);
    end(std::move(sequence), RequestEnd::cancelled, true);
    return true;
  }
  if (const auto it = std::find_if(waiting_.begin(), waiting_.end(), is_it); it != waiting_.end()) {
    SequencePtr sequence = std::move(*it);
    waiting_.erase(it);
    end(std::move(sequence), RequestEnd::cancelled, false);  // not alive in the trace
    return true;
  }
  return false;
}

bool Batcher::next(Step& step) {
  REDECODE_CHECK(!in_flight_);
  if (idle()) return false;
  Step built;
  built.index = next_index_++;
  built.departures = std::exchange(departures_, {});
  const size_t ended = built.departures.size();
  size_t decode_rows = 0;
  if (options_.mixed) {
    add_decode_rows(built);
    decode_rows = built.rows.size();
    const bool preempted = built.departures.size() > ended;
    if (decode_rows < options_.prefill_chunk_rows)
      add_prefill_rows(built, options_.prefill_chunk_rows - static_cast<uint32_t>(decode_rows),
                       !preempted);
  } else if (decode_pending() && (last_was_prefill_ || !prefill_pending())) {
    add_decode_rows(built);
    decode_rows = built.rows.size();
  } else {
    add_prefill_rows(built, options_.prefill_chunk_rows, true);
  }
  REDECODE_CHECK(!built.rows.empty());
  if (decode_rows == built.rows.size()) {
    built.phase = Phase::decode;
    built.bucket = bucket_for(built.rows.size());
  } else {
    built.phase = decode_rows == 0 ? Phase::prefill : Phase::mixed;
  }
  last_was_prefill_ = built.phase == Phase::prefill;
  in_flight_ = true;
  step = std::move(built);
  return true;
}

bool Batcher::departures_only(Step& step) {
  REDECODE_CHECK(!in_flight_);
  if (departures_.empty()) return false;
  step = Step{};
  step.index = next_index_++;
  step.departures = std::exchange(departures_, {});
  return true;
}

uint32_t Batcher::bucket_for(size_t rows) const {
  const auto holds = std::lower_bound(options_.buckets.begin(), options_.buckets.end(), rows);
  return holds == options_.buckets.end() ? 0 : *holds;
}

bool Batcher::decode_pending() const {
  return !running_.empty() && !running_.front()->prefilling();
}

bool Batcher::prefill_pending() const {
  if (!running_.empty() && running_.back()->prefilling()) return true;
  if (waiting_.empty() || running_.size() >= options_.max_running) return false;
  return fits(*waiting_.front(), match_prefix(*waiting_.front()));
}

void Batcher::give(Step& step, Sequence& sequence, PageId page, bool shared) {
  const auto index = static_cast<uint32_t>(sequence.pages.size());
  sequence.pages.push_back(page);
  step.page_changes.push_back({sequence.request.id, index, page, shared});
}

void Batcher::add_decode_rows(Step& step) {
  // running_ shrinks from its end under preemption, never below the rows already built.
  for (size_t i = 0; i < running_.size() && !running_[i]->prefilling(); ++i) {
    const uint32_t position = running_[i]->computed;
    if (position / options_.page_size == running_[i]->pages.size()) {
      const auto page = allocate_or_preempt(step, i);
      if (!page) return;
      give(step, *running_[i], *page, false);
    }
    add_chunk(step, *running_[i], 1);
  }
}

std::optional<PageId> Batcher::allocate_or_preempt(Step& step, size_t running_index) {
  for (;;) {
    if (const auto page = pages_.allocate()) return page;
    preempt_newest(step);
    if (running_index == running_.size()) return std::nullopt;  // it was the newest itself
  }
}

void Batcher::preempt_newest(Step& step) {
  REDECODE_CHECK_OP(running_.size(), >, 1u);  // alone, submit has checked that it fits
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  drop_pages(*sequence);
  sequence->resumed = true;
  step.departures.push_back({sequence->request.id, DepartureReason::preempted});
  waiting_.push_front(std::move(sequence));
  ++counters_.preemptions;
}

void Batcher::add_prefill_rows(Step& step, uint32_t budget_rows, bool admit) {
  const size_t rows_before = step.rows.size();
  for (size_t i = 0; i < running_.size() && budget_rows > 0; ++i)
    if (running_[i]->prefilling()) budget_rows -= add_chunk(step, *running_[i], budget_rows);
  while (admit && budget_rows > 0 && admit_head(step))
    budget_rows -= add_chunk(step, *running_.back(), budget_rows);
  counters_.prompt_rows += step.rows.size() - rows_before;
}

uint32_t Batcher::add_chunk(Step& step, Sequence& sequence, uint32_t budget_rows) {
  const uint32_t count = std::min(budget_rows, sequence.length() - sequence.computed);
  const uint32_t size = options_.page_size;
  for (uint32_t position = sequence.computed; position < sequence.computed + count; ++position)
    step.rows.push_back({.request = sequence.request.id,
                         .position = position,
                         .token = sequence.tokens[position],
                         .slot = sequence.pages[position / size] * size + position % size,
                         .wants_output = position + 1 == sequence.length()});
  sequence.scheduled = count;
  return count;
}

Batcher::Prefix Batcher::match_prefix(const Sequence& sequence) const {
  Prefix prefix;
  if (!options_.prefix_sharing) return prefix;
  const uint32_t most = (sequence.length() - 1) / options_.page_size;
  for (uint32_t index = 0; index < most; ++index) {
    const auto tokens = sequence.page_tokens(index, options_.page_size);
    const Digest chain = chain_hash(prefix.chain, tokens);
    const auto page = pages_.find(chain, tokens);
    if (!page) break;
    prefix.pages.push_back(*page);
    prefix.chain = chain;
  }
  return prefix;
}

bool Batcher::fits(const Sequence& sequence, const Prefix& prefix) const {
  // One token of room beyond the prompt keeps an admission from being preempted at its first
  // decode.
  const uint64_t tokens =
      std::min<uint64_t>(sequence.length() + 1, longest_kv_tokens(sequence.request));
  const auto from_cache = std::count_if(prefix.pages.begin(), prefix.pages.end(),
                                        [&](PageId page) { return pages_.holders(page) == 0; });
  return pages_for(tokens) - prefix.pages.size() + static_cast<size_t>(from_cache) <=
         pages_.available_pages();
}

bool Batcher::admit_head(Step& step) {
  if (waiting_.empty() || running_.size() >= options_.max_running) return false;
  const Prefix prefix = match_prefix(*waiting_.front());
  if (!fits(*waiting_.front(), prefix)) return false;
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  Sequence& sequence = *running_.back();
  for (const PageId page : prefix.pages) {
    pages_.acquire(page);
    give(step, sequence, page, true);
  }
  while (sequence.pages.size() < pages_for(sequence.length())) {
    const auto page = pages_.allocate();
    REDECODE_CHECK(page.has_value());
    give(step, sequence, *page, false);
  }
  sequence.chain = prefix.chain;
  sequence.chained_pages = static_cast<uint32_t>(prefix.pages.size());
  sequence.computed = sequence.chained_pages * options_.page_size;
  sequence.prefill_target = sequence.length();
  step.arrivals.push_back({.request = sequence.request.id,
                           .session = sequence.request.session,
                           .round = sequence.request.round,
                           .prompt_tokens = sequence.length(),
                           .cached_tokens = sequence.computed,
                           .max_tokens = sequence.request.max_tokens,
                           .resumed = sequence.resumed,
                           .sampling = sequence.request.sampling});
  counters_.prompt_tokens += sequence.length();
  counters_.cached_tokens += sequence.computed;
  return true;
}

std::vector<FinishedRequest> Batcher::take_finished() { return std::exchange(finished_, {}); }

void Batcher::end(SequencePtr sequence, RequestEnd how, bool departs) {
  drop_pages(*sequence);
  if (departs) {
    DepartureReason reason = DepartureReason::finished;
    if (how == RequestEnd::cancelled) reason = DepartureReason::cancelled;
    if (how == RequestEnd::failed) reason = DepartureReason::failed;
    departures_.push_back({sequence->request.id, reason});
  }
  live_.erase(sequence->request.id);
  std::vector<int32_t> output;
  if (!sequence->tokens.empty())
    output.assign(
        sequence->tokens.begin() + static_cast<std::ptrdiff_t>(sequence->request.prompt.size()),
        sequence->tokens.end());
  ++counters_.finished;
  finished_.push_back({std::move(sequence->request), std::move(output), how});
}

void Batcher::drop_pages(Sequence& sequence) {
  // Deepest first, so that eviction eats a cached chain from its end.
  for (auto page = sequence.pages.rbegin(); page != sequence.pages.rend(); ++page)
    pages_.release(*page);
  sequence.pages.clear();
  sequence.computed = 0;
  sequence.chained_pages = 0;
  sequence.chain = kChainStart;
}

void Batcher::register_full_pages(Sequence& sequence) {
  if (!options_.prefix_sharing) return;
  const uint32_t size = options_.page_size;
  while ((sequence.chained_pages + 1) * size <= sequence.computed) {
    const auto tokens = sequence.page_tokens(sequence.chained_pages, size);
    sequence.chain = chain_hash(sequence.chain, tokens);
    pages_.register_page(sequence.pages[sequence.chained_pages], sequence.chain, tokens);
    ++sequence.chained_pages;
  }
}

std::optional<RequestEnd> Batcher::append(Sequence& sequence, int32_t token) {
  sequence.tokens.push_back(token);
  ++counters_.output_tokens;
  if (token < 0 || (options_.vocab != 0 && static_cast<uint32_t>(token) >= options_.vocab))
    return RequestEnd::failed;
  if (token == sequence.request.stop_token) return RequestEnd::stop;
  if (sequence.output_tokens() >= sequence.request.max_tokens) return RequestEnd::length;
  if (sequence.length() >= options_.max_seq_len) return RequestEnd::length;
  return std::nullopt;
}

void Batcher::update(const StepOutput& output) {
  REDECODE_CHECK(in_flight_);
  REDECODE_CHECK_OP(output.step + 1, ==, next_index_);
  in_flight_ = false;
  size_t at = 0;
  std::vector<SequencePtr> still_running;
  still_running.reserve(running_.size());
  for (SequencePtr& sequence : running_) {
    const bool ran = sequence->scheduled > 0;
    sequence->computed += std::exchange(sequence->scheduled, 0u);
    std::optional<RequestEnd> ended;
    if (ran) register_full_pages(*sequence);
    if (ran && sequence->computed == sequence->length()) {
      REDECODE_CHECK_OP(at, <, output.rows.size());
      const RowOutput& row = output.rows[at++];
      REDECODE_CHECK_OP(row.request, ==, sequence->request.id);
      REDECODE_CHECK_OP(row.position + 1, ==, sequence->length());
      ended = append(*sequence, row.token);
    }
    if (ended)
      end(std::move(sequence), *ended, true);
    else
      still_running.push_back(std::move(sequence));
  }
  REDECODE_CHECK_OP(at, ==, output.rows.size());
  running_ = std::move(still_running);
}

}  // namespace redecode
