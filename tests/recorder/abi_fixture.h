// tests/recorder/abi_fixture.h - an engine that decodes nothing: batches whose every value follows
// from the step's number, recorded through the C ABI and checked when read back.
#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "recorder/abi/redecode_record.h"
#include "traces/trace_file.h"

namespace redecode::test {

// A fixed batch of requests, each a token further with every step.
class FakeEngine {
 public:
  static constexpr uint32_t kPageSize = 16;

  explicit FakeEngine(uint32_t rows) : rows_(rows) {
    for (auto* column : {&request_, &position_, &token_, &slot_}) column->resize(rows);
  }

  // The books of the first step.
  void arrive(rr_lane* lane) const {
    for (uint32_t i = 0; i < rows_; ++i) {
      rr_arrival a;
      rr_arrival_init(&a, sizeof a);
      a.request = i;
      a.session = i;
      a.prompt_tokens = 1;
      a.max_tokens = 1u << 20;
      rr_arrive(lane, &a);
    }
  }

  // Pages that the step needs, then its rows.
  int step(rr_lane* lane, uint64_t index, uint64_t time_ns = RR_NO_TIME) {
    if (index % kPageSize == 0)
      for (uint32_t i = 0; i < rows_; ++i)
        rr_page(lane, i, static_cast<uint32_t>(index / kPageSize), page(i, index), 0);
    fill(index);
    rr_step_info info;
    rr_step_info_init(&info, sizeof info);
    info.rows = rows_;
    info.bucket = rows_;
    info.time_ns = time_ns;
    info.request = {request_.data(), 0, 4};
    info.position = {position_.data(), 0, 4};
    info.token = {token_.data(), 0, 4};
    info.slot = {slot_.data(), 0, 4};
    return rr_step(lane, &info);
  }

  // What step() recorded.
  Step expected(uint64_t index) const {
    Step step;
    step.index = index;
    step.bucket = rows_;
    for (uint32_t i = 0; i < rows_; ++i)
      step.rows.push_back(
          {.request = i,
           .position = static_cast<uint32_t>(index),
           .token = token(i, index),
           .slot = page(i, index) * kPageSize + static_cast<uint32_t>(index % kPageSize),
           .wants_output = true});
    return step;
  }

 private:
  void fill(uint64_t index) {
    for (uint32_t i = 0; i < rows_; ++i) {
      request_[i] = i;
      position_[i] = static_cast<uint32_t>(index);
      token_[i] = static_cast<uint32_t>(token(i, index));
      slot_[i] = page(i, index) * kPageSize + static_cast<uint32_t>(index % kPageSize);
    }
  }
  uint32_t page(uint32_t row, uint64_t index) const {
    return 1 + row + rows_ * static_cast<uint32_t>(index / kPageSize % 4096);
  }
  static int32_t token(uint32_t row, uint64_t index) {
    return static_cast<int32_t>((index * 2654435761u + row * 40503u) % 1000);
  }

  uint32_t rows_;
  std::vector<uint32_t> request_, position_, token_, slot_;
};

// Options with the path that they point to.
struct Options : rr_options {
  explicit Options(const std::filesystem::path& file) : stored(file.string()) {
    rr_options_init(this, sizeof(rr_options));
    path = stored.c_str();
    page_size = FakeEngine::kPageSize;
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  std::string stored;
};

// Steps and gaps of a trace, and whether every step is what the engine recorded.
struct ReadBack {
  std::vector<StepIndex> steps;
  std::vector<Gap> gaps;
  uint64_t wrong = 0, outputs = 0, lost = 0;
  FileEnd end = FileEnd::cut;
};

inline void see(const TraceRecord& record, const FakeEngine& engine, ReadBack& out) {
  if (record.output) ++out.outputs;
  if (record.gap) {
    out.gaps.push_back(*record.gap);
    out.lost += record.gap->count;
  }
  if (!record.step) return;
  out.steps.push_back(record.step->index);
  Step step = *record.step;
  const Step expected = engine.expected(step.index);
  out.wrong += step.rows != expected.rows || step.bucket != expected.bucket ? 1 : 0;
}

inline ReadBack read_back(const std::filesystem::path& path, const FakeEngine& engine) {
  ReadBack out;
  TraceReader reader(path);
  TraceRecord record;
  while (reader.next(record)) see(record, engine, out);
  out.end = reader.summary().end;
  return out;
}

}  // namespace redecode::test
