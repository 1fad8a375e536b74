#include "traces/edit/block_hasher.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "traces/edit/redaction_note.h"
#include "traces/edit/seal.h"

namespace redecode {
namespace {

constexpr std::string_view kHashWord = "hash ";
constexpr size_t kHashedTextBytes = 256;
constexpr size_t kHexDigits = 16;

uint64_t first_bits(const std::array<uint8_t, 32>& hash) {
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof out; ++i) out = out << 8 | hash[i];
  return out;
}

Event hash_note(StepIndex step, RequestId request, uint32_t index,
                const std::array<uint8_t, 32>& hash) {
  char digits[kHexDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(first_bits(hash)));
  return note(step, request,
              std::string(kHashWord) + std::to_string(request) + ' ' + std::to_string(index) + ' ' +
                  digits);
}

}  // namespace

BlockHasher::BlockHasher(std::span<const uint8_t> salt, uint32_t page_size)
    : salt_(salt), page_size_(std::max(1u, page_size)) {}

BlockHasher::Chain BlockHasher::next(const Chain& chain, std::span<const uint8_t> block) const {
  std::vector<uint8_t> bytes(chain.begin(), chain.end());
  bytes.insert(bytes.end(), block.begin(), block.end());
  return keyed_hash(salt_, "redecode block", bytes);
}

void BlockHasher::add(const PageChange& change, StepIndex step, std::vector<Event>& out) {
  State& state = running_[change.request];
  if (!change.shared) {
    pages_.erase(change.page);
    state.pages[change.index] = change.page;
    return;
  }
  const auto page = pages_.find(change.page);
  if (page == pages_.end() || uint64_t{change.index} * page_size_ != state.next ||
      !state.tokens.empty())
    return;
  state.chain = page->second;
  state.next += page_size_;
  out.push_back(hash_note(step, change.request, change.index, state.chain));
}

void BlockHasher::add(const Step& step, std::vector<Event>& out) {
  for (const Departure& d : step.departures) running_.erase(d.request);
  for (const PageChange& change : step.page_changes) add(change, step.index, out);
  for (const Row& row : step.rows) {
    State& state = running_[row.request];
    // The last token of a prompt that is cached in full runs again.
    if (row.position != state.next) continue;
    ++state.next;
    state.tokens.push_back(row.token);
    if (state.tokens.size() < page_size_) continue;
    state.chain = next(state.chain, bytes_of(state.tokens));
    state.tokens.clear();
    const uint32_t index = row.position / page_size_;
    if (const auto page = state.pages.find(index); page != state.pages.end())
      pages_[page->second] = state.chain;
    out.push_back(hash_note(step.index, row.request, index, state.chain));
  }
}

void BlockHasher::forget() {
  running_.clear();
  pages_.clear();
}

std::vector<uint64_t> BlockHasher::hashes_of(const std::string& prompt) const {
  std::vector<uint64_t> out;
  Chain chain{};
  const std::span bytes(reinterpret_cast<const uint8_t*>(prompt.data()), prompt.size());
  for (size_t at = 0; at + kHashedTextBytes <= bytes.size(); at += kHashedTextBytes) {
    chain = next(chain, bytes.subspan(at, kHashedTextBytes));
    out.push_back(first_bits(chain));
  }
  return out;
}

bool is_hash_note(const Event& event) {
  std::string_view text = event.text;
  if (event.kind != EventKind::note || !text.starts_with(kHashWord)) return false;
  text.remove_prefix(kHashWord.size());
  return is_of(take_word(text), kDigits) && is_of(take_word(text), kDigits) &&
         text.size() == kHexDigits && is_of(text, "0123456789abcdef");
}

}  // namespace redecode
