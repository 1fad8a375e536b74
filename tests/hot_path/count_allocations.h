// tests/hot_path/count_allocations.h - how often this thread asked for memory, by any of malloc's
// doors. Its own program: it replaces malloc for all of it.
#pragma once
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define REDECODE_COUNTS_ALLOCATIONS 0  // the sanitizer's malloc stands there
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REDECODE_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef REDECODE_COUNTS_ALLOCATIONS
#define REDECODE_COUNTS_ALLOCATIONS 1
#endif

namespace redecode::test {

uint64_t allocations_of_this_thread();

}  // namespace redecode::test
