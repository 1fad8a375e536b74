#include "tests/hot_path/count_allocations.h"

#include <cstddef>

namespace {
// Initialised at load, so that the counter itself never allocates.
thread_local uint64_t count __attribute__((tls_model("initial-exec"))) = 0;
}  // namespace

uint64_t redecode::test::allocations_of_this_thread() { return count; }

#if REDECODE_COUNTS_ALLOCATIONS
// operator new ends here as well: libstdc++'s calls malloc or aligned_alloc.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++count;
  return __libc_malloc(size);
}
void* calloc(size_t items, size_t size) {
  ++count;
  return __libc_calloc(items, size);
}
void* realloc(void* old, size_t size) {
  ++count;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++count;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;  // ENOMEM
}
}
#endif
