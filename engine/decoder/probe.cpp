#include "engine/decoder/probe.h"

#include <algorithm>
#include <utility>

namespace redecode {
namespace {

// Bytes of row `row` of a row-structured region; the last row of a strided view may be shorter than
// the stride.
std::span<const std::byte> row_bytes(const std::byte* base, const Region& r, uint32_t row) {
  const uint64_t begin = uint64_t{row} * r.row_stride_bytes;
  const uint64_t end = std::min<uint64_t>(begin + r.row_stride_bytes, r.size_bytes);
  return {base + begin, end > begin ? end - begin : 0};
}

}  // namespace

OpProber::OpProber(const Program& step_program, const Batch& batch, Probe probe)
    : program_(step_program), batch_(batch), probe_(probe) {}

void OpProber::ran(const Program&, const Bindings& bindings, uint32_t index) {
  const Command& c = program_.commands[index];
  OpProbe out;
  out.command = index;
  out.layer = c.layer;
  out.stream = c.stream;
  out.op = std::string((*program_.names)[c.name]);
  bool seen_rows = false;
  const auto address = [&](const Region& r) {
    return bindings.of(r.buffer).address + r.offset_bytes;
  };
  for (const Region& r : program_.operands_of(c)) {
    if (!writes(r.access) || r.access == Access::scratch) continue;
    const std::byte* base = address(r);
    if (r.row_stride_bytes == 0) {
      out.digest = combine(out.digest, digest_bytes(base, r.size_bytes));
      continue;
    }
    const auto rows_written =
        static_cast<uint32_t>((r.size_bytes + r.row_stride_bytes - 1) / r.row_stride_bytes);
    const uint32_t rows = std::min(batch_.real_rows, rows_written);
    std::vector<Digest> digests(rows);
    for (uint32_t row = 0; row < rows; ++row) {
      const auto bytes = row_bytes(base, r, row);
      digests[row] = digest_bytes(bytes.data(), bytes.size());
      out.digest = combine(out.digest, digests[row]);
      if (probe_ == Probe::values && !seen_rows) {
        const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
        out.values.insert(out.values.end(), data, data + bytes.size());
      }
    }
    if (!seen_rows) {
      out.row_digests = std::move(digests);
      out.element_size_bytes = 4;
    }
    seen_rows = true;
  }
  for (const Region& r : program_.touched_of(c))
    if (writes(r.access) && r.request != kNoRequest)
      out.digest = combine(out.digest, digest_bytes(address(r), r.size_bytes));
  seen_.push_back(std::move(out));
}

std::vector<OpProbe> OpProber::take() {
  std::ranges::sort(seen_, {}, &OpProbe::command);
  return std::exchange(seen_, {});
}

}  // namespace redecode
