#include "engine/batcher/page_allocator.h"

#include <algorithm>

#include "traces/check.h"

namespace redecode {

Digest chain_hash(Digest previous, std::span<const int32_t> page_tokens) {
  return combine(previous, digest_span(page_tokens));
}

PageAllocator::PageAllocator(uint32_t page_count, uint32_t page_size) : page_size_(page_size) {
  REDECODE_CHECK_OP(page_count, >=, 2u);
  REDECODE_CHECK_OP(page_size, >, 0u);
  pages_.resize(page_count);
  for (PageId page = 1; page < page_count; ++page) free_.push(page);
}

const PageAllocator::Page& PageAllocator::at(PageId page) const {
  REDECODE_CHECK_OP(page, >, PageId{0});
  REDECODE_CHECK_OP(page, <, pages_.size());
  return pages_[page];
}

PageAllocator::Page& PageAllocator::at(PageId page) {
  return const_cast<Page&>(std::as_const(*this).at(page));
}

std::optional<PageId> PageAllocator::allocate() {
  PageId page = 0;
  if (!free_.empty()) {
    page = free_.top();
    free_.pop();
  } else if (!cached_.empty()) {
    page = cached_.begin()->second;
    cached_.erase(cached_.begin());
    forget(page);
    ++evictions_;
  } else {
    return std::nullopt;
  }
  at(page).holders = 1;
  return page;
}

void PageAllocator::acquire(PageId page) {
  Page& entry = at(page);
  if (entry.holders == 0) {
    REDECODE_CHECK(entry.registered);
    cached_.erase({entry.released_at, page});
  }
  ++entry.holders;
}

void PageAllocator::release(PageId page) {
  Page& entry = at(page);
  REDECODE_CHECK_OP(entry.holders, >, 0u);
  if (--entry.holders > 0) return;
  if (!entry.registered) {
    free_.push(page);
    return;
  }
  entry.released_at = releases_++;
  cached_.insert({entry.released_at, page});
}

bool PageAllocator::register_page(PageId page, Digest hash, std::span<const int32_t> page_tokens) {
  Page& entry = at(page);
  REDECODE_CHECK_OP(entry.holders, >, 0u);
  REDECODE_CHECK_OP(page_tokens.size(), ==, page_size_);
  REDECODE_CHECK(!entry.registered);
  if (!by_hash_.try_emplace(hash, page).second) return false;
  entry.registered = true;
  entry.hash = hash;
  entry.tokens.assign(page_tokens.begin(), page_tokens.end());
  return true;
}

std::optional<PageId> PageAllocator::find(Digest hash, std::span<const int32_t> page_tokens) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  const Page& entry = at(found->second);
  if (!std::equal(page_tokens.begin(), page_tokens.end(), entry.tokens.begin(), entry.tokens.end()))
    return std::nullopt;
  return found->second;
}

uint32_t PageAllocator::holders(PageId page) const { return at(page).holders; }
bool PageAllocator::registered(PageId page) const { return at(page).registered; }

void PageAllocator::forget(PageId page) {
  Page& entry = at(page);
  by_hash_.erase(entry.hash);
  entry.registered = false;
  entry.tokens.clear();
}

}  // namespace redecode
