#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "engine/batcher/page_allocator.h"
#include "traces/random.h"

using namespace redecode;

namespace {

const std::vector<int32_t> kTokens = {1, 2, 3, 4};
const std::vector<int32_t> kOther = {1, 2, 3, 5};

}  // namespace

TEST_CASE("pages are handed out lowest first and never the dummy") {
  PageAllocator pages(5, 4);
  CHECK(pages.available_pages() == 4);
  for (PageId expected = 1; expected < 5; ++expected) CHECK(pages.allocate() == expected);
  CHECK_FALSE(pages.allocate().has_value());
  pages.release(3);
  pages.release(2);
  CHECK(pages.allocate() == PageId{2});
  CHECK(pages.allocate() == PageId{3});
  CHECK(pages.held_pages() == 4);
}

TEST_CASE("a page is free only after its last holder") {
  PageAllocator pages(3, 4);
  const PageId page = *pages.allocate();
  pages.acquire(page);
  CHECK(pages.holders(page) == 2);
  pages.release(page);
  CHECK(pages.free_pages() == 1);
  pages.release(page);
  CHECK(pages.free_pages() == 2);
}

TEST_CASE("a registered page outlives its holder until its room is needed") {
  PageAllocator pages(3, 4);
  const Digest hash = chain_hash(kChainStart, kTokens);
  const PageId page = *pages.allocate();
  CHECK_FALSE(pages.find(hash, kTokens).has_value());
  CHECK(pages.register_page(page, hash, kTokens));
  CHECK(pages.find(hash, kTokens) == page);
  pages.release(page);
  CHECK(pages.cached_pages() == 1);
  CHECK(pages.find(hash, kTokens) == page);
  pages.acquire(page);
  CHECK(pages.cached_pages() == 0);
  pages.release(page);

  CHECK(pages.allocate() == PageId{2});  // the free one first
  CHECK(pages.allocate() == page);       // then the cached one
  CHECK_FALSE(pages.find(hash, kTokens).has_value());
  CHECK_FALSE(pages.registered(page));
  CHECK(pages.evictions() == 1);
}

TEST_CASE("the cached page released longest ago is evicted first") {
  PageAllocator pages(4, 4);
  std::vector<Digest> hashes;
  for (int32_t i = 0; i < 3; ++i) {
    const std::vector<int32_t> tokens = {i, i, i, i};
    hashes.push_back(chain_hash(kChainStart, tokens));
    pages.register_page(*pages.allocate(), hashes.back(), tokens);
  }
  for (const PageId page : {2u, 3u, 1u}) pages.release(page);
  pages.acquire(2);
  pages.release(2);  // now the latest
  CHECK(pages.allocate() == PageId{3});
  CHECK(pages.allocate() == PageId{1});
  CHECK(pages.allocate() == PageId{2});
}

TEST_CASE("an equal hash with other tokens is not a hit") {
  PageAllocator pages(4, 4);
  const Digest hash = chain_hash(kChainStart, kTokens);
  pages.register_page(*pages.allocate(), hash, kTokens);
  CHECK_FALSE(pages.find(hash, kOther).has_value());
  const PageId second = *pages.allocate();
  CHECK_FALSE(pages.register_page(second, hash, kTokens));  // the first one is kept
  pages.release(second);
  CHECK(pages.free_pages() == 2);
}

TEST_CASE("chained hashes depend on every page before") {
  const Digest first = chain_hash(kChainStart, kTokens);
  const Digest other = chain_hash(kChainStart, kOther);
  CHECK(first != other);
  CHECK(chain_hash(first, kTokens) != chain_hash(other, kTokens));
  CHECK(chain_hash(first, kTokens) != first);
}

TEST_CASE("every page is free, cached or held under random calls") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomSequence draws(seed);
    PageAllocator pages(9, 4);
    std::vector<PageId> holds;  // one entry a holder
    for (int turn = 0; turn < 2000; ++turn) {
      const uint64_t what = draws.below(4);
      if (what == 0) {
        if (const auto page = pages.allocate())
          holds.push_back(*page);
        else
          REQUIRE(pages.held_pages() == 8);
      } else if (what == 1 && !holds.empty()) {
        const size_t which = draws.below(holds.size());
        pages.release(holds[which]);
        holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (what == 2 && !holds.empty()) {
        const PageId page = holds[draws.below(holds.size())];
        const auto token = static_cast<int32_t>(draws.below(6));
        const std::vector<int32_t> tokens(4, token);
        if (!pages.registered(page))
          pages.register_page(page, chain_hash(kChainStart, tokens), tokens);
      } else if (what == 3) {
        const std::vector<int32_t> tokens(4, static_cast<int32_t>(draws.below(6)));
        if (const auto page = pages.find(chain_hash(kChainStart, tokens), tokens)) {
          pages.acquire(*page);
          holds.push_back(*page);
        }
      }
      uint32_t held = 0, holders = 0;
      for (PageId page = 1; page < 9; ++page) {
        held += pages.holders(page) > 0;
        holders += pages.holders(page);
      }
      REQUIRE(holders == holds.size());
      REQUIRE(pages.held_pages() == held);
    }
  }
}
