// engine/batcher/page_allocator.h - who holds which KV page, and which pages can be found again.
//
// A page is free, held (by one or more requests), or cached: held by nobody, but full of tokens
// whose chained hash is known, so that a later prompt with the same beginning can take it over.
// Page 0 is the dummy page of padding rows and is never handed out.
//
// Which page is handed out depends on earlier calls only: the lowest free id first, else the cached
// page released longest ago, counted in releases. Not thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "traces/digest.h"
#include "traces/step.h"

namespace redecode {

// Hash of a full page: of its tokens and, through `previous`, of all tokens before it. The first
// page of a sequence has kChainStart before it.
inline constexpr Digest kChainStart = 0x6b76206368616974;
Digest chain_hash(Digest previous, std::span<const int32_t> page_tokens);

class PageAllocator {
 public:
  // Errors: CHECK when page_count < 2 or page_size is 0.
  PageAllocator(uint32_t page_count, uint32_t page_size);

  // A page held once, its content undefined; nullopt when every page is held. Takes a cached page
  // out of the cache when no free one is left. O(log pages).
  std::optional<PageId> allocate();
  // One more or one fewer holder. A page that loses its last one becomes cached when it was
  // registered, free otherwise. Errors: CHECK when `page` is the dummy, or held by nobody on
  // release.
  void acquire(PageId page);
  void release(PageId page);

  // Makes a held page findable under `hash`. False when the hash is already taken by another page,
  // which is kept: both hold equal tokens. Errors: CHECK when held by nobody or not page_size
  // tokens.
  bool register_page(PageId page, Digest hash, std::span<const int32_t> page_tokens);
  // The page registered under `hash`, held or cached, if its tokens are equal to these.
  std::optional<PageId> find(Digest hash, std::span<const int32_t> page_tokens) const;

  uint32_t holders(PageId page) const;
  bool registered(PageId page) const;
  uint32_t free_pages() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t cached_pages() const { return static_cast<uint32_t>(cached_.size()); }
  // Pages that allocate could still return.
  uint32_t available_pages() const { return free_pages() + cached_pages(); }
  uint32_t held_pages() const { return page_count() - 1 - available_pages(); }
  uint32_t page_count() const { return static_cast<uint32_t>(pages_.size()); }
  uint64_t evictions() const { return evictions_; }

 private:
  struct Page {
    uint32_t holders = 0;
    bool registered = false;
    uint64_t released_at = 0;
    Digest hash = 0;
    std::vector<int32_t> tokens;  // [page_size] while registered
  };
  void forget(PageId page);
  const Page& at(PageId page) const;
  Page& at(PageId page);

  std::vector<Page> pages_;
  std::priority_queue<PageId, std::vector<PageId>, std::greater<>> free_;
  std::set<std::pair<uint64_t, PageId>> cached_;  // by released_at
  std::map<Digest, PageId> by_hash_;
  uint32_t page_size_;
  uint64_t releases_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace redecode
