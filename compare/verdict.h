// compare/verdict.h - Verdict: what a comparison of two runs comes to, and the process exit status.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/align.h"
#include "compare/divergence.h"
#include "traces/finding.h"
#include "traces/header.h"

namespace redecode {

enum class VerdictKind : uint8_t {
  identical,     // no difference in any step that was compared
  explained,     // the first differing op is one whose declared reduction shape changed
  diverged,      // a difference that nothing declared
  incomparable,  // different traces, models or kernel sets, or a run cut short
};
std::string_view to_text(VerdictKind kind);
// 0 identical, 1 explained or diverged, 3 incomparable.
int exit_code(VerdictKind kind);

struct Verdict {
  VerdictKind kind = VerdictKind::identical;
  std::vector<std::string>
      reasons;  // one line each; never empty unless plainly identical or diverged
  bool operator==(const Verdict&) const = default;
};

// Why two runs cannot be compared; empty when they can. The trace, the model (its digests,
// vocabulary and layers), the index-key type and, unless a tolerance is named, the kernel set must
// be equal. Streams, capture, backend, order, top-k version, feedback and injected defects may
// differ: none of them may change a bit.
std::vector<std::string> header_differences(const RunHeader& golden, const RunHeader& candidate,
                                            uint32_t max_ulps = 0);

// `differences` as above. A divergence counts whatever the coverage; without one, runs that do not
// hold the same steps are incomparable unless `allow_prefix`, and runs with no step in common
// always are.
Verdict judge(const std::vector<std::string>& differences, const Coverage& coverage,
              const std::optional<Divergence>& divergence, const std::optional<Finding>& numeric,
              bool allow_prefix);

}  // namespace redecode
