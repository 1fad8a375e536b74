// traces/row_codec.h - RowCodec: the rows of a step as columns that leave out what follows from
// before.
//
// Lossless for any rows. What is expected, exactly: traces/schema/trace.capnp, struct Step. Both
// sides keep the same small state per request; it starts anew with every chunk. Cost: O(rows log
// requests).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "traces/step.h"

namespace redecode {

// An empty column means "as expected".
struct RowColumns {
  uint32_t row_count = 0;
  std::vector<uint32_t> requests;
  std::vector<uint32_t> positions;  // minus expected
  std::vector<uint16_t> tokens;     // low halves, always there
  std::vector<uint16_t> tokens_high;
  std::vector<uint32_t> slots;  // minus expected
  std::vector<uint8_t> wants_output;
};

class RowCodec {
 public:
  explicit RowCodec(uint32_t page_size) : page_size_(page_size) {}
  void reset();  // at the start of a chunk
  RowColumns encode(const Step& step);
  // Fills step.rows; all else of `step` must be there. Errors: corrupt (columns of different
  // lengths).
  void decode(const RowColumns& columns, Step& step);

 private:
  struct RequestState {
    uint32_t next_position = 0;
    std::map<uint32_t, PageId> pages;
    // The entry of the last row, found without a search; it is in `pages` too.
    uint32_t last_index = UINT32_MAX;
    PageId last_page = 0;
  };
  void begin(const Step& step);
  void finish(const Step& step);
  uint32_t expected_slot(const RequestState& state, uint32_t position) const;
  void learn(RequestState& state, const Row& row);
  static void set_page(RequestState& state, uint32_t index, PageId page);

  uint32_t page_size_;
  std::map<RequestId, RequestState> requests_;
  std::array<std::vector<RequestId>, 3> last_requests_;  // by phase
};

}  // namespace redecode
