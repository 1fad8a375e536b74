// traces/capnp_message.h - Cap'n Proto messages as one segment of words. Internal to traces/*.cpp:
// no public header includes it, so Cap'n Proto stays inside this folder.
#pragma once
#include <capnp/message.h>
#include <kj/exception.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "traces/container.h"
#include "traces/limits.h"

namespace redecode::codec {

using Message = std::vector<uint64_t>;

// First segment for builders; of fixed size, so that a message's bytes follow from its value alone.
class Scratch {
 public:
  Scratch() : words_(kj::heapArray<capnp::word>(kWords)) {
    std::memset(words_.begin(), 0, kWords * sizeof(capnp::word));
  }
  kj::ArrayPtr<capnp::word> words() { return words_; }

 private:
  static constexpr size_t kWords = 8192;
  kj::Array<capnp::word> words_;
};

inline Message with_segment_table(kj::ArrayPtr<const capnp::word> segment) {
  Message out(segment.size() + 1);
  const uint64_t count = segment.size();
  out[0] = count << 32;  // u32 segments - 1, u32 words, little-endian
  std::memcpy(out.data() + 1, segment.begin(), count * sizeof(uint64_t));
  return out;
}

template <class Root>
Message flatten(capnp::MessageBuilder& builder) {
  if (builder.getSegmentsForOutput().size() == 1)
    return with_segment_table(builder.getSegmentsForOutput()[0]);
  const auto root = builder.getRoot<Root>().asReader();
  const uint64_t words = root.totalSize().wordCount + 1;
  limits::check(words * 8, uint64_t{1} << 30, "bytes of a record");
  capnp::MallocMessageBuilder flat(static_cast<unsigned>(words),
                                   capnp::AllocationStrategy::FIXED_SIZE);
  flat.setRoot(root);
  return with_segment_table(flat.getSegmentsForOutput()[0]);
}

// Builds a message: fill(root).
template <class Root, class Fill>
Message build(Scratch& scratch, Fill&& fill) {
  capnp::MallocMessageBuilder builder(scratch.words());
  fill(builder.initRoot<Root>());
  return flatten<Root>(builder);
}

// Reads a message: use(root). Its size must have been checked: one segment, whole. Errors: corrupt,
// limit, version; with `context` where they come without one.
template <class Root, class Use>
void open(MessageWords message, const std::string& context, Use&& use) {
  const auto* words = reinterpret_cast<const capnp::word*>(message.data());
  const kj::ArrayPtr<const capnp::word> segment(words + 1, message.size() - 1);
  const kj::ArrayPtr<const capnp::word> segments[] = {segment};
  capnp::ReaderOptions options;
  options.traversalLimitInWords = segment.size() * limits::kTraversalFactor + 64;
  options.nestingLimit = limits::kNesting;
  try {
    capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments, 1), options);
    use(reader.getRoot<Root>());
  } catch (const kj::Exception& e) {
    throw Error(ErrorCode::corrupt,
                std::string("record is malformed: ") + e.getDescription().cStr(), context);
  } catch (const Error& e) {
    if (!e.context().empty()) throw;
    throw Error(e.code(), e.message(), context);
  }
}

}  // namespace redecode::codec
