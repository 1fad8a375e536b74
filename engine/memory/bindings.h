// engine/memory/bindings.h - Bindings: which address each buffer of a program got.
//
// bind walks a program's allocate, free and record_stream commands in program order against a pool,
// as a host would: host time, before anything runs. Frozen at capture in graph mode.
#pragma once
#include <vector>

#include "engine/memory/pool.h"
#include "traces/program.h"

namespace redecode {

struct Binding {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;   // of the buffer, not of the block
  BlockId block = kNoBlock;  // kNoBlock: persistent
  uint64_t generation = 0;
  Placement place;
  uint32_t allocated_by = UINT32_MAX;  // command index
  uint32_t freed_by = UINT32_MAX;      // command index; UINT32_MAX: never freed by the program
};

struct Bindings {
  PoolId pool = kOrdinaryPool;
  std::vector<Binding> transients;                    // by BufferId::index()
  const std::vector<Binding>* persistents = nullptr;  // by BufferId::index(); outlives the bindings

  const Binding& of(BufferId id) const {
    return id.is_persistent() ? (*persistents)[id.index()] : transients[id.index()];
  }
  // Digest of all placements in buffer order: equal digests mean equal aliasing.
  Digest layout_digest() const;
};

// Errors: environment when the pool is exhausted, naming the buffer and its size. Transients that
// the program leaves allocated stay live in the pool: release gives them back.
Bindings bind(const Program& program, Pool& pool, PoolId pool_id,
              const std::vector<Binding>& persistents);

// Frees what the program itself did not free.
void release(const Bindings& bindings, Pool& pool);

}  // namespace redecode
