// cli/decode_workload.h - DecodeWorkload: a decode instance of a serving fleet as a recorder sees
// it, for `redecode bench record`.
//
// Real lengths (the built-in Mooncake sample) and real text (the built-in tool-calling dialogues,
// each word hashed into a vocabulary of 129,280): `batch` sequences, each walking the text from a
// random place; one that ends departs, and the next of the sample takes its row. Prompts come from
// prefill instances: their rows never appear, their pages do. No clock takes part.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/header.h"
#include "traces/step.h"

namespace redecode {

class DecodeWorkload {
 public:
  static constexpr uint32_t kVocab = 129280;

  DecodeWorkload(uint32_t batch, uint32_t page_size, uint64_t seed);
  Step next();  // ascending from 0; obeys validate.h
  TraceHeader header() const;

 private:
  struct Sequence {
    RequestId request = 0;
    uint32_t position = 0, end = 0;
    size_t word = 0;  // place in the text
    std::vector<PageId> pages;
  };
  void begin(Sequence& sequence, Step& step);
  void leave(Sequence& sequence, Step& step);
  void give_page(Sequence& sequence, Step& step);
  uint64_t random();

  uint32_t page_size_;
  uint64_t seed_, draws_ = 0;
  StepIndex index_ = 0;
  RequestId next_request_ = 0;
  uint64_t time_us_ = 1;
  std::vector<int32_t> words_;
  std::vector<std::pair<uint32_t, uint32_t>> lengths_;  // prompt, output
  std::vector<Sequence> sequences_;
  std::vector<PageId> free_pages_;
  PageId next_page_ = 1;
};

}  // namespace redecode
