#include "engine/decoder/batch_builder.h"

#include <algorithm>
#include <string>

#include "traces/error.h"

namespace redecode {

BatchBuilder::BatchBuilder(const EngineSettings& settings, PadPolicy pad)
    : settings_(settings),
      pad_(pad),
      table_stride_((settings.max_seq_len + settings.page_size - 1) / settings.page_size),
      tail_tokens_(settings.max_batch_rows, 0),
      tail_slots_(settings.max_batch_rows, 0) {}

Batch BatchBuilder::build(const Step& step, const PageTables& tables) {
  const auto where = [&] { return "step " + std::to_string(step.index); };
  for (const auto& d : step.departures) sampling_.erase(d.request);
  for (const auto& a : step.arrivals) sampling_[a.request] = a.sampling;
  if (step.padded_rows() > settings_.max_batch_rows)
    throw Error(ErrorCode::corrupt,
                std::to_string(step.padded_rows()) + " rows, the engine holds " +
                    std::to_string(settings_.max_batch_rows),
                where());
  Batch batch;
  batch.step = step.index;
  batch.bucket = step.bucket;
  batch.real_rows = static_cast<uint32_t>(step.rows.size());
  batch.rows = step.rows;
  batch.table_stride = table_stride_;
  batch.page_size = settings_.page_size;
  pad(batch);
  batch.page_table.assign(batch.rows.size() * table_stride_, 0);
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    const auto pages = tables.pages(batch.rows[r].request);
    std::copy(pages.begin(), pages.end(),
              batch.page_table.begin() + static_cast<std::ptrdiff_t>(r * table_stride_));
    const bool wanted = step.bucket != 0 || batch.rows[r].wants_output;
    if (!wanted) continue;
    batch.output_rows.push_back(static_cast<uint32_t>(r));
    if (r >= batch.real_rows) {
      batch.sampling.emplace_back();
      continue;
    }
    const auto at = sampling_.find(batch.rows[r].request);
    if (at == sampling_.end())
      throw Error(ErrorCode::corrupt,
                  "row " + std::to_string(r) + " of request " +
                      std::to_string(batch.rows[r].request) + ", which is not live",
                  where());
    batch.sampling.push_back(at->second);
  }
  return batch;
}

void BatchBuilder::pad(Batch& batch) {
  for (size_t r = 0; r < batch.rows.size(); ++r) {
    tail_tokens_[r] = batch.rows[r].token;
    tail_slots_[r] = batch.rows[r].slot;
  }
  for (size_t r = batch.rows.size(); r < batch.bucket; ++r) {
    Row row;
    row.token = tail_tokens_[r];
    row.slot = pad_ == PadPolicy::stale_slot ? tail_slots_[r] : 0;
    batch.rows.push_back(row);
  }
}

Batch BatchBuilder::dummy(uint32_t bucket) const {
  Batch batch;
  batch.bucket = bucket;
  batch.rows.resize(bucket);
  batch.table_stride = table_stride_;
  batch.page_size = settings_.page_size;
  batch.page_table.assign(size_t{bucket} * table_stride_, 0);
  batch.sampling.resize(bucket);
  for (uint32_t r = 0; r < bucket; ++r) batch.output_rows.push_back(r);
  return batch;
}

}  // namespace redecode
