// traces/step_block.h - consecutive steps as columns: BlockEncoder and BlockDecoder. Internal to
// traces/*.cpp.
//
// Columns: traces/schema/trace.capnp, struct StepBlock. Both sides move the RowCodec of their chunk
// on. Cost of add: a few ns a row where rows are as expected; no allocation once the buffers have
// grown.
#pragma once
#include <cstdint>
#include <vector>

#include "traces/capnp_message.h"
#include "traces/row_codec.h"
#include "traces/schema/trace.capnp.h"
#include "traces/step.h"

namespace redecode::codec {

class BlockEncoder {
 public:
  explicit BlockEncoder(RowCodec& rows) : rows_(rows) {}
  bool empty() const { return steps_ == 0; }
  // A step that does not follow the last one belongs into another block.
  bool follows(const Step& step) const { return empty() || step.index == first_ + steps_; }
  bool fits(const Step& step) const;
  // Errors: limit.
  void add(const Step& step);
  uint32_t steps() const { return steps_; }
  StepIndex first() const { return first_; }
  uint64_t size_bytes() const { return size_bytes_; }  // of the record, about; at least
  void write(schema::StepBlock::Builder out) const;
  void clear();

 private:
  void add_books(const Step& step);
  void add_rows(const Step& step);
  void add_exception(uint32_t position, uint32_t slot);

  RowCodec& rows_;
  StepIndex first_ = 0;
  uint32_t steps_ = 0;
  uint64_t row_count_ = 0, size_bytes_ = 0;
  uint32_t last_bucket_ = 0, last_rows_ = 0;
  uint64_t last_time_ = 0;
  std::vector<uint8_t> phases_;
  std::vector<uint32_t> buckets_, row_counts_, rows_left_out_;
  std::vector<uint64_t> times_;
  std::vector<uint32_t> departure_steps_, arrival_steps_, request_steps_, requests_;
  std::vector<Departure> departures_;
  std::vector<Arrival> arrivals_;
  std::vector<uint32_t> page_steps_, page_requests_, page_indexes_, page_pages_;
  std::vector<uint8_t> page_shared_;
  uint32_t last_page_step_ = 0, last_page_request_ = 0, last_page_ = 0;
  std::vector<uint32_t> exception_rows_, exception_positions_, exception_slots_;
  uint64_t last_exception_ = 0;
  std::vector<uint8_t> wants_;
  bool all_want_ = true;
  std::vector<std::vector<uint32_t>> lanes_;  // tokens by request
  uint32_t lane_base_ = 0, lane_count_ = 0;
  uint32_t token_bits_ = 0;  // all tokens or-ed
  std::vector<RequestId> ids_;
  std::vector<ScheduleState::Running*> states_;
};

class BlockDecoder {
 public:
  explicit BlockDecoder(RowCodec& rows) : rows_(rows) {}
  // Errors: corrupt, limit, version. All steps are there then.
  void open(schema::StepBlock::Reader in);
  bool next(Step& out);  // false when all were given
  void close() { given_ = steps_.size(); }

 private:
  class Rows;
  void read_rows(schema::StepBlock::Reader in);
  void read_tokens(schema::StepBlock::Reader in);

  RowCodec& rows_;
  std::vector<Step> steps_;
  size_t given_ = 0;
  std::vector<uint32_t> lane_of_row_;
  uint32_t lane_base_ = 0, lane_count_ = 0;
};

}  // namespace redecode::codec
