#include "cli/decode_workload.h"

#include <algorithm>
#include <string_view>

#include "traces/digest.h"
#include "traces/import_mooncake.h"
#include "traces/random.h"
#include "traces/samples.h"

namespace redecode {
namespace {

constexpr uint32_t kLongestPrompt = 8192;

std::vector<int32_t> words_of(std::string_view text) {
  std::vector<int32_t> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    const Digest digest = digest_bytes(text.data() + at, end - at);
    out.push_back(static_cast<int32_t>(digest % DecodeWorkload::kVocab));
    at = end;
  }
  return out;
}

}  // namespace

DecodeWorkload::DecodeWorkload(uint32_t batch, uint32_t page_size, uint64_t seed)
    : page_size_(page_size), seed_(seed), words_(words_of(dialogue_sample())), sequences_(batch) {
  for (const MooncakeRow& row : parse_mooncake(mooncake_sample(), "sample"))
    lengths_.emplace_back(std::min(row.input_length, kLongestPrompt),
                          std::max(row.output_length, 2u));
}

uint64_t DecodeWorkload::random() { return random_bits(seed_, draws_++); }

TraceHeader DecodeWorkload::header() const {
  TraceHeader header;
  header.writer = "redecode bench";
  header.model.family = "external";
  header.model.vocab = kVocab;
  header.engine.page_size = page_size_;
  header.workload = "decode instance";
  return header;
}

void DecodeWorkload::give_page(Sequence& sequence, Step& step) {
  PageId page = next_page_;
  if (free_pages_.empty()) {
    ++next_page_;
  } else {
    page = free_pages_.back();
    free_pages_.pop_back();
  }
  step.page_changes.push_back({.request = sequence.request,
                               .index = static_cast<uint32_t>(sequence.pages.size()),
                               .page = page,
                               .shared = false});
  sequence.pages.push_back(page);
}

void DecodeWorkload::begin(Sequence& sequence, Step& step) {
  const auto& [prompt, output] = lengths_[next_request_ % lengths_.size()];
  sequence.request = next_request_++;
  sequence.position = prompt;
  // The first of all are found in the middle of their answers.
  const uint32_t done = index_ == 0 ? static_cast<uint32_t>(random() % output) : 0;
  sequence.end = prompt + output - done;
  sequence.word = random() % words_.size();
  Arrival arrival;
  arrival.request = sequence.request;
  arrival.session = sequence.request;
  arrival.prompt_tokens = arrival.cached_tokens = prompt;
  arrival.max_tokens = output;
  step.arrivals.push_back(arrival);
  while (sequence.pages.size() * page_size_ <= prompt) give_page(sequence, step);
}

void DecodeWorkload::leave(Sequence& sequence, Step& step) {
  step.departures.push_back({sequence.request, DepartureReason::finished});
  free_pages_.insert(free_pages_.end(), sequence.pages.rbegin(), sequence.pages.rend());
  sequence.pages.clear();
}

Step DecodeWorkload::next() {
  Step step;
  step.phase = Phase::decode;
  step.bucket = static_cast<uint32_t>(sequences_.size());
  for (Sequence& sequence : sequences_)
    if (index_ != 0 && sequence.position == sequence.end) leave(sequence, step);
  for (Sequence& sequence : sequences_)
    if (sequence.pages.empty()) begin(sequence, step);
  for (Sequence& sequence : sequences_) {
    if (sequence.position / page_size_ == sequence.pages.size()) give_page(sequence, step);
    step.rows.push_back({.request = sequence.request,
                         .position = sequence.position,
                         .token = words_[sequence.word],
                         .slot = sequence.pages[sequence.position / page_size_] * page_size_ +
                                 sequence.position % page_size_,
                         .wants_output = true});
    ++sequence.position;
    sequence.word = (sequence.word + 1) % words_.size();
  }
  time_us_ += 25'000 + random() % 400;
  step.time_us = time_us_;
  step.index = index_++;
  return step;
}

}  // namespace redecode
