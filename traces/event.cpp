#include "traces/event.h"

#include <array>

#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr std::array<std::string_view, 9> kKinds = {
    "registered",       "queued",       "kv_handed_over",
    "blocks_allocated", "blocks_freed", "blocks_copied",
    "blocks_shared",    "environment",  "note"};

constexpr std::array<std::string_view, 9> kCauses = {"the recorder's ring was full",
                                                     "the file could not be written",
                                                     "the recording process was killed",
                                                     "the file is damaged",
                                                     "a file of the set is missing",
                                                     "not sampled",
                                                     "overwritten by newer steps",
                                                     "cut out",
                                                     "a record was too large"};

}  // namespace

std::string_view to_text(EventKind kind) {
  const size_t at = static_cast<size_t>(kind);
  return at < kKinds.size() ? kKinds[at] : "unknown";
}

bool from_text(std::string_view text, EventKind& out) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] != text) continue;
    out = static_cast<EventKind>(i);
    return true;
  }
  return false;
}

std::string gap_causes_text(uint32_t causes) {
  std::string out;
  for (size_t i = 0; i < kCauses.size(); ++i) {
    if ((causes >> i & 1) == 0) continue;
    if (!out.empty()) out += ", ";
    out += kCauses[i];
  }
  return out.empty() ? "unknown cause" : out;
}

std::string to_text(const Gap& gap) {
  std::string out = gap.first == gap.last ? "step " : "steps ";
  out += std::to_string(gap.first);
  if (gap.first != gap.last) out += ".." + std::to_string(gap.last);
  out += " (" + with_thousands(gap.count) + (gap.count == 1 ? " step" : " steps");
  if (gap.bytes != 0) out += ", " + with_thousands(gap.bytes) + " bytes";
  return out + (gap.count == 1 ? ") is missing: " : ") are missing: ") +
         gap_causes_text(gap.causes);
}

}  // namespace redecode
