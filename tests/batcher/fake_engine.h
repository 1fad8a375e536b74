// tests/batcher/fake_engine.h - a stand-in for the decoder that knows what every KV slot holds, and
// checks each step it runs.
//
// A slot holds a digest of all tokens up to its own, read through the request's page table, so that
// a wrong, stale or foreign page changes every token after it. The token sampled is a function of
// that digest, the request's seed and the position; `expected_output` says what it must be.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/batcher/batcher.h"
#include "traces/digest.h"
#include "traces/output.h"
#include "traces/step.h"
#include "traces/traffic.h"
#include "traces/validate.h"

namespace redecode::fake {

inline constexpr Digest kUnwritten = 0xdeadbeefdeadbeef;
inline constexpr Digest kEmptySequence = 7;

inline Digest extend(Digest before, int32_t token) {
  return combine(before, static_cast<Digest>(static_cast<uint32_t>(token)));
}

inline int32_t sample(Digest content, uint64_t seed, uint32_t position, uint32_t vocab) {
  return static_cast<int32_t>(combine(combine(content, seed), position) % vocab);
}

// What a request must produce, whatever the schedule.
inline std::vector<int32_t> expected_output(const Request& request, uint32_t vocab,
                                            uint32_t max_seq_len) {
  Digest content = kEmptySequence;
  for (const int32_t token : request.prompt) content = extend(content, token);
  std::vector<int32_t> output;
  size_t length = request.prompt.size();
  while (output.size() < request.max_tokens && length < max_seq_len) {
    output.push_back(
        sample(content, request.sampling.seed, static_cast<uint32_t>(length - 1), vocab));
    if (output.back() == request.stop_token) break;
    content = extend(content, output.back());
    ++length;
  }
  return output;
}

class Engine {
 public:
  Engine(BatcherOptions options, uint32_t vocab)
      : options_(checked(std::move(options))),
        vocab_(vocab),
        slots_(size_t{options_.page_size} * options_.page_count, kUnwritten),
        validator_(model(vocab), engine_settings(options_), "") {}

  static ModelIdentity model(uint32_t vocab) {
    ModelIdentity identity;
    identity.vocab = vocab;
    return identity;
  }

  // Throws Error when the step breaks a rule of traces/validate.h, and std::logic_error, naming the
  // step and the rule, when it breaks one of the batcher's own.
  StepOutput run(const Step& step) {
    step_ = step.index;
    validator_.add(step);
    require(step.index == steps_, "indices ascend by 1");
    ++steps_;
    for (const Departure& departure : step.departures) depart(departure);
    for (const Arrival& arrival : step.arrivals) arrive(arrival);
    for (const PageChange& change : step.page_changes) change_page(change);
    check_shape(step);
    StepOutput output;
    output.step = step.index;
    for (size_t i = 0; i < step.rows.size(); ++i) run_row(step.rows[i], i, output);
    digest_ = combine(digest_, digest_of(step));
    rows_ += step.rows.size();
    return output;
  }

  Digest digest() const { return digest_; }  // of all steps
  uint64_t steps() const { return steps_; }
  uint64_t rows() const { return rows_; }
  uint64_t resumed() const { return resumed_; }
  uint64_t shared_pages() const { return shared_pages_; }
  size_t alive() const { return alive_.size(); }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }

 private:
  struct Alive {
    Arrival arrival;
    std::map<uint32_t, PageId> pages;
    uint32_t next_position = 0;
    uint32_t order = 0;
  };

  void require(bool holds, const std::string& rule) const {
    if (!holds) throw std::logic_error("step " + std::to_string(step_) + ": " + rule);
  }

  void depart(const Departure& departure) {
    const auto it = alive_.find(departure.request);
    require(it != alive_.end(), "who departs is alive");
    if (departure.reason == DepartureReason::preempted) preempted_.insert(departure.request);
    for (const auto& [index, page] : it->second.pages) --holders_[page];
    alive_.erase(it);
  }

  void arrive(const Arrival& arrival) {
    require(!alive_.contains(arrival.request), "who arrives is not alive");
    require(arrival.resumed == (preempted_.erase(arrival.request) > 0), "resumed after preemption");
    require(arrival.resumed || seen_.insert(arrival.request).second, "ids are not reused");
    require(arrival.cached_tokens % options_.page_size == 0, "cached pages are whole");
    require(arrival.cached_tokens < arrival.prompt_tokens, "a prompt row is left");
    resumed_ += arrival.resumed;
    arrivals_.push_back(arrival);
    alive_[arrival.request] = {arrival, {}, arrival.cached_tokens, arrival_order_++};
  }

  void change_page(const PageChange& change) {
    require(alive_.contains(change.request), "pages go to the living");
    Alive& owner = alive_[change.request];
    require(change.page > 0 && change.page < options_.page_count, "page exists, not the dummy");
    require(owner.pages.try_emplace(change.index, change.page).second, "page given once");
    const size_t first = size_t{change.page} * options_.page_size;
    if (change.shared) {
      require(change.index < owner.arrival.cached_tokens / options_.page_size, "shared is cached");
      for (size_t slot = first; slot < first + options_.page_size; ++slot)
        require(slots_[slot] != kUnwritten, "shared pages are written");
      ++shared_pages_;
    } else {
      require(holders_[change.page] == 0, "a page that is not shared has one holder");
      std::fill_n(slots_.begin() + static_cast<std::ptrdiff_t>(first), options_.page_size,
                  kUnwritten);
    }
    ++holders_[change.page];
  }

  void check_shape(const Step& step) {
    bool prompt = false, decode = false;
    uint32_t last_order = 0;
    RequestId last_request = kNoRequest;
    for (const Row& row : step.rows) {
      require(alive_.contains(row.request), "rows belong to the living");
      const Alive& owner = alive_[row.request];
      (row.position < owner.arrival.prompt_tokens ? prompt : decode) = true;
      if (row.request != last_request)
        require(last_request == kNoRequest || owner.order > last_order, "rows in arrival order");
      last_request = row.request;
      last_order = owner.order;
    }
    require(!step.rows.empty(), "a step has rows");
    const Phase phase = !decode ? Phase::prefill : prompt ? Phase::mixed : Phase::decode;
    require(step.phase == phase, "phase fits the rows");
    require(options_.mixed || phase != Phase::mixed, "mixed only when asked");
    const size_t most = decode && !prompt ? options_.max_batch_rows : options_.prefill_chunk_rows;
    require(step.rows.size() <= most, "rows within the budget");
    uint32_t bucket = 0;
    for (const uint32_t candidate : options_.buckets)
      if (bucket == 0 && candidate >= step.rows.size()) bucket = candidate;
    require(step.bucket == (phase == Phase::decode ? bucket : 0), "smallest bucket that holds");
  }

  void run_row(const Row& row, size_t index, StepOutput& output) {
    Alive& owner = alive_[row.request];
    require(row.position == owner.next_position++, "positions in order, each once");
    require(row.position < options_.max_seq_len, "position within max_seq_len");
    require(row.token >= 0 && static_cast<uint32_t>(row.token) < vocab_, "token in vocabulary");
    require(row.slot == slot_of(owner, row.position), "slot is the page table's");
    require(holders_[row.slot / options_.page_size] == 1, "nobody writes a shared page");
    Digest before = kEmptySequence;
    if (row.position > 0) before = slots_[slot_of(owner, row.position - 1)];
    require(before != kUnwritten, "the token before is written");
    slots_[row.slot] = extend(before, row.token);
    require(row.wants_output == (row.position + 1 >= owner.arrival.prompt_tokens),
            "the last prompt row and every decode row want output");
    if (!row.wants_output) return;
    RowOutput out;
    out.row = static_cast<uint32_t>(index);
    out.request = row.request;
    out.position = row.position;
    out.token = sample(slots_[row.slot], owner.arrival.sampling.seed, row.position, vocab_);
    output.rows.push_back(out);
  }

  uint32_t slot_of(const Alive& owner, uint32_t position) const {
    const auto page = owner.pages.find(position / options_.page_size);
    require(page != owner.pages.end(), "position has a page");
    return page->second * options_.page_size + position % options_.page_size;
  }

  static Digest digest_of(const Step& step) {
    Digest digest = combine(step.index, static_cast<Digest>(step.phase) << 32 | step.bucket);
    for (const Departure& d : step.departures)
      digest = combine(digest, uint64_t{d.request} << 8 | static_cast<uint8_t>(d.reason));
    for (const Arrival& a : step.arrivals)
      digest =
          combine(combine(digest, a.request), uint64_t{a.prompt_tokens} << 32 | a.cached_tokens);
    for (const PageChange& c : step.page_changes)
      digest = combine(combine(digest, uint64_t{c.request} << 32 | c.index), c.page * 2 + c.shared);
    for (const Row& r : step.rows)
      digest = combine(combine(digest, uint64_t{r.request} << 32 | r.position),
                       uint64_t{r.slot} << 32 | static_cast<uint32_t>(r.token));
    return digest;
  }

  BatcherOptions options_;
  uint32_t vocab_;
  std::vector<Digest> slots_;
  StepValidator validator_;
  std::map<PageId, uint32_t> holders_;
  std::map<RequestId, Alive> alive_;
  std::set<RequestId> preempted_, seen_;
  std::vector<Arrival> arrivals_;
  uint32_t arrival_order_ = 0;
  StepIndex step_ = 0;
  uint64_t steps_ = 0, rows_ = 0, resumed_ = 0, shared_pages_ = 0;
  Digest digest_ = 0;
};

}  // namespace redecode::fake
