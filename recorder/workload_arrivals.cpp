#include "recorder/workload_arrivals.h"

#include <algorithm>
#include <string>
#include <utility>

#include "recorder/workload_check.h"
#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

enum Purpose : uint64_t { kBlock = 17, kOwnTokens, kSampling };

constexpr uint32_t kMaxPromptTokens = 1u << 24;

void require(bool holds, const char* what) { require_option(holds, "Arrival", what); }

uint32_t scaled(uint32_t length, uint32_t scale, uint32_t cap) {
  const uint32_t shorter = std::max(1u, length / scale);
  return cap == 0 ? shorter : std::min(shorter, cap);
}

}  // namespace

std::vector<ArrivalRow> arrival_rows(std::span<const MooncakeRow> rows) {
  std::vector<ArrivalRow> out;
  out.reserve(rows.size());
  for (const MooncakeRow& row : rows)
    out.push_back({std::min(row.arrival_ms, UINT64_MAX / 1000) * 1000, row.input_length,
                   row.output_length, row.hash_ids});
  return out;
}

std::vector<ArrivalRow> arrival_rows(std::span<const AzureRow> rows) {
  std::vector<ArrivalRow> out;
  out.reserve(rows.size());
  for (const AzureRow& row : rows)
    out.push_back({row.arrival_100ns / 10, row.context_tokens, row.generated_tokens, {}});
  return out;
}

ArrivalWorkload::ArrivalWorkload(std::vector<ArrivalRow> rows, const ArrivalOptions& options)
    : rows_(std::move(rows)), options_(options) {
  require(options_.scale > 0 && kMooncakeBlockTokens % options_.scale == 0,
          "scale must divide 512, so that blocks stay whole");
  require(options_.step_us > 0, "step_us must be at least 1");
  check_drawing("Arrival", options_.vocab, options_.sampling);
  require(!rows_.empty(), "the trace has no rows");
  require(rows_.size() < kNoRequest, "the trace has too many rows");
  std::stable_sort(rows_.begin(), rows_.end(), [](const ArrivalRow& a, const ArrivalRow& b) {
    return a.arrival_us < b.arrival_us;
  });
  if (options_.rows != 0 && rows_.size() > options_.rows) rows_.resize(options_.rows);
  for (size_t i = 0; i < rows_.size(); ++i)
    if (scaled(rows_[i].prompt_tokens, options_.scale, options_.prompt_cap) > kMaxPromptTokens)
      throw Error(ErrorCode::limit,
                  "A prompt has more than 16,777,216 tokens after scaling; use a larger scale",
                  "row " + std::to_string(i) + " by arrival");
}

StepIndex ArrivalWorkload::step_of(const ArrivalRow& row) const {
  return (row.arrival_us - rows_.front().arrival_us) / options_.step_us;
}

std::vector<int32_t> ArrivalWorkload::prompt_of(const ArrivalRow& row, RequestId id) const {
  const uint32_t length = scaled(row.prompt_tokens, options_.scale, options_.prompt_cap);
  const uint32_t block_tokens = kMooncakeBlockTokens / options_.scale;
  std::vector<int32_t> prompt(length);
  for (uint32_t i = 0; i < length; ++i) {
    const uint32_t block = i / block_tokens;
    const uint64_t bits =
        block < row.block_ids.size()
            ? random_bits(options_.seed, (uint64_t{row.block_ids[block]} << 32) | i % block_tokens,
                          kBlock)
            : random_bits(options_.seed, (uint64_t{id} << 32) | i, kOwnTokens);
    prompt[i] = static_cast<int32_t>(random_below(bits, options_.vocab));
  }
  return prompt;
}

void ArrivalWorkload::poll(StepIndex now, std::vector<Request>& out) {
  for (; next_ < rows_.size() && step_of(rows_[next_]) <= now; ++next_) {
    const ArrivalRow& row = rows_[next_];
    Request request;
    request.id = static_cast<RequestId>(next_);
    request.session = request.id;
    request.prompt = prompt_of(row, request.id);
    request.max_tokens = scaled(row.output_tokens, options_.scale, options_.output_cap);
    request.stop_token = options_.stop_token;
    request.sampling = options_.sampling;
    request.sampling.seed = random_bits(options_.seed, request.id, kSampling);
    out.push_back(std::move(request));
  }
}

void ArrivalWorkload::finished(const Request&, const std::vector<int32_t>&, RequestEnd, StepIndex) {
}

StepIndex ArrivalWorkload::next_arrival() const {
  return exhausted() ? UINT64_MAX : step_of(rows_[next_]);
}

}  // namespace redecode
