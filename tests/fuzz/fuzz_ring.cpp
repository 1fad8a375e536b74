// First byte: 0 the rest is a ring file, else it is what a ring with a good header holds; its value
// says where the head stands.
#include <cstddef>
#include <cstring>

#include "recorder/ring/ring_file.h"
#include "recorder/ring/shared_ring.h"
#include "traces/byte_source.h"
#include "traces/crc32c.h"
#include "traces/error.h"

namespace redecode {
namespace {

class Nothing final : public RecordTarget {
 public:
  void take(const Step&) override {}
  void take(const StepOutput&) override {}
  void take(const Event&) override {}
  void take(const Gap& gap) override { to_text(gap); }
};

template <class T>
void put(std::vector<uint8_t>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

std::vector<uint8_t> ring_around(std::span<const uint8_t> records, uint64_t turns) {
  std::vector<uint8_t> bytes(kRingHeaderBytes + kMinRingBytes);
  const uint64_t used = std::min<uint64_t>(records.size() / 8 * 8, kMinRingBytes);
  const uint64_t tail = turns * 8;
  for (uint64_t i = 0; i < used; ++i)
    bytes[kRingHeaderBytes + ((tail + i) & (kMinRingBytes - 1))] = records[i];
  put(bytes, offsetof(RingHeader, magic), kRingMagic);
  put(bytes, offsetof(RingHeader, version), kRingVersion);
  put(bytes, offsetof(RingHeader, ring_bytes), kMinRingBytes);
  put(bytes, offsetof(RingHeader, crc), crc32c(bytes.data(), offsetof(RingHeader, crc)));
  put(bytes, offsetof(RingHeader, head), tail + used);
  put(bytes, offsetof(RingHeader, tail), tail);
  return bytes;
}

void drain(std::vector<uint8_t> bytes) {
  RingFile file(in_memory(std::move(bytes), "fuzz"));
  const std::vector<uint8_t> contents = file.contents();
  std::span<const uint8_t> left = contents;
  Nothing target;
  Assembler assembler(target, 0);
  RawRecord record;
  while (take_record(left, record))
    if (assembler.take(record) == Taken::unsound) break;
  assembler.finish();
}

}  // namespace
}  // namespace redecode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size < 2) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  try {
    drain(data[0] == 0 ? std::vector<uint8_t>(rest.begin(), rest.end())
                       : ring_around(rest, uint64_t{data[0]} * 700));
  } catch (const Error&) {
  }
  return 0;
}
