#include "recorder/workload_exchanges.h"

#include <algorithm>
#include <map>

#include "traces/error.h"
#include "traces/limits.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

constexpr uint64_t kBytesPerToken = 4;
constexpr uint32_t kOutputTokens = 16;

uint32_t prompt_tokens(const Exchange& exchange) {
  if (exchange.prompt_tokens != 0) return exchange.prompt_tokens;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(exchange.prompt_bytes / kBytesPerToken, 1, limits::kImportTokens));
}

uint32_t output_tokens(const Exchange& exchange) {
  if (exchange.output_tokens != 0) return exchange.output_tokens;
  return exchange.max_tokens != 0 ? exchange.max_tokens : kOutputTokens;
}

// Ids of 32 bits for hashes of 64: small ones stay what they are, as long as all are small; else
// they are numbered as they come.
class BlockIds {
 public:
  explicit BlockIds(bool are_small) : are_small_(are_small) {}
  uint32_t of(uint64_t hash) {
    if (are_small_) return static_cast<uint32_t>(hash);
    return ids_.emplace(hash, static_cast<uint32_t>(ids_.size())).first->second;
  }

 private:
  bool are_small_;
  std::map<uint64_t, uint32_t> ids_;
};

template <class Use>
void for_each_exchange(const std::filesystem::path& path, Use&& use) {
  TraceReader reader(path);
  TraceRecord record;
  while (reader.next(record))
    if (record.exchange) use(*record.exchange);
}

}  // namespace

std::vector<ArrivalRow> exchange_rows(const std::filesystem::path& path) {
  bool are_small = true;
  for_each_exchange(path, [&](const Exchange& exchange) {
    for (const uint64_t hash : exchange.block_hashes) are_small = are_small && hash <= UINT32_MAX;
  });
  BlockIds ids(are_small);
  std::vector<ArrivalRow> rows;
  for_each_exchange(path, [&](const Exchange& exchange) {
    limits::check(rows.size() + 1, limits::kImportRows, "exchanges");
    ArrivalRow row{exchange.start_us, prompt_tokens(exchange), output_tokens(exchange), {}};
    const uint64_t blocks =
        (uint64_t{row.prompt_tokens} + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
    if (exchange.block_hashes.size() <= blocks)
      for (const uint64_t hash : exchange.block_hashes) row.block_ids.push_back(ids.of(hash));
    rows.push_back(std::move(row));
  });
  if (rows.empty())
    throw Error(ErrorCode::usage,
                "the trace holds no exchange: record one with --proxy, or import one",
                path.string());
  return rows;
}

}  // namespace redecode
