#include "engine/memory/bindings.h"

#include <algorithm>

#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

Binding& checked_transient(Bindings& bindings, BufferId buffer) {
  REDECODE_CHECK(!buffer.is_persistent());
  REDECODE_CHECK_OP(buffer.index(), <, bindings.transients.size());
  return bindings.transients[buffer.index()];
}

bool held(const Binding& b) { return b.block != kNoBlock && b.freed_by == UINT32_MAX; }

void allocate(const Program& program, uint32_t command, Pool& pool, Bindings& bindings) {
  const BufferId buffer = program.commands[command].buffer;
  Binding& b = checked_transient(bindings, buffer);
  REDECODE_CHECK(b.block == kNoBlock);
  const TransientBuffer& t = program.transients[buffer.index()];
  Allocation got;
  if (pool.allocate(bindings.pool, t.stream, std::max(t.size_bytes, uint64_t{1}), got) !=
      AllocateResult::ok) {
    release(bindings, pool);
    throw Error(ErrorCode::environment,
                "no device memory is left for `" + std::string(program.name_of(buffer)) + "` of " +
                    std::to_string(t.size_bytes) + " bytes",
                "layer " + std::to_string(t.layer) + ", command " + std::to_string(command) +
                    ", pool " + std::to_string(bindings.pool));
  }
  b.address = got.address;
  b.size_bytes = t.size_bytes;
  b.block = got.block;
  b.generation = got.generation;
  b.place = got.place;
  b.allocated_by = command;
}

}  // namespace

Digest Bindings::layout_digest() const {
  std::vector<uint64_t> words = {pool, transients.size()};
  const auto add = [&](const Binding& b) {
    words.insert(words.end(), {b.block != kNoBlock, b.place.segment, b.place.offset_bytes,
                               b.place.size_bytes, b.size_bytes});
  };
  for (const Binding& b : transients) add(b);
  if (persistents != nullptr)
    for (const Binding& b : *persistents) add(b);
  return digest_span(std::span<const uint64_t>(words));
}

Bindings bind(const Program& program, Pool& pool, PoolId pool_id,
              const std::vector<Binding>& persistents) {
  Bindings bindings;
  bindings.pool = pool_id;
  bindings.transients.resize(program.transients.size());
  bindings.persistents = &persistents;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    if (c.kind == CommandKind::allocate) {
      allocate(program, i, pool, bindings);
    } else if (c.kind == CommandKind::free) {
      Binding& b = checked_transient(bindings, c.buffer);
      REDECODE_CHECK(held(b));
      pool.free(b.block);
      b.freed_by = i;
    } else if (c.kind == CommandKind::record_stream) {
      Binding& b = checked_transient(bindings, c.buffer);
      REDECODE_CHECK(held(b));
      pool.record_stream(b.block, c.stream);
    }
  }
  return bindings;
}

void release(const Bindings& bindings, Pool& pool) {
  for (const Binding& b : bindings.transients)
    if (held(b)) pool.free(b.block);
}

}  // namespace redecode
