// traces/edit/block_hasher.h - BlockHasher: salted hashes of full pages of tokens and of blocks of
// text, so that equal beginnings can be told without the words.
//
// Each is HMAC-SHA256 under the salt over all blocks of a request so far, cut to 64 bits. A page
// carries its hash to the requests that share it. Memory: a hash a full page and a running request.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "traces/event.h"
#include "traces/exchange.h"
#include "traces/step.h"

namespace redecode {

class BlockHasher {
 public:
  // `salt` must outlive the hasher.
  BlockHasher(std::span<const uint8_t> salt, uint32_t page_size);

  // Appends a note "hash REQUEST BLOCK H" for each page that the step fills, or shares with what
  // filled it. Requests whose beginning is not in the trace have none. Steps must come in order.
  void add(const Step& step, std::vector<Event>& out);
  // Steps are missing: what pages hold is not known any more, nor what goes before a next token.
  void forget();

  // Of each 256 bytes of a prompt; a shorter rest has none.
  std::vector<uint64_t> hashes_of(const std::string& prompt) const;

 private:
  using Chain = std::array<uint8_t, 32>;
  struct State {
    uint32_t next = 0;            // position
    std::vector<int32_t> tokens;  // since the last full page
    Chain chain{};
    std::map<uint32_t, PageId> pages;  // own ones, by index
  };

  void add(const PageChange& change, StepIndex step, std::vector<Event>& out);
  Chain next(const Chain& chain, std::span<const uint8_t> block) const;

  std::span<const uint8_t> salt_;
  uint32_t page_size_;
  std::map<RequestId, State> running_;
  std::map<PageId, Chain> pages_;  // full ones
};

// True for a note of exactly the form that BlockHasher writes.
bool is_hash_note(const Event& event);

}  // namespace redecode
