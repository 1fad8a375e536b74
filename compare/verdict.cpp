#include "compare/verdict.h"

#include "traces/thousands.h"

namespace redecode {
namespace {

std::string steps(uint64_t count) {
  return with_thousands(count) + (count == 1 ? " step" : " steps");
}

std::string differ(std::string_view what, std::string_view golden, std::string_view candidate) {
  return std::string(what) + ": golden has " + std::string(golden) + ", candidate " +
         std::string(candidate);
}

void compare_models(const ModelIdentity& golden, const ModelIdentity& candidate,
                    std::vector<std::string>& out) {
  if (golden.config_digest != candidate.config_digest || golden.vocab != candidate.vocab ||
      golden.layers != candidate.layers) {
    out.push_back(differ("different model",
                         golden.spec + " (config " + digest_hex(golden.config_digest) + ")",
                         candidate.spec + " (config " + digest_hex(candidate.config_digest) + ")"));
  } else if (golden.weights_digest != candidate.weights_digest) {
    out.push_back(differ("different weights", digest_hex(golden.weights_digest),
                         digest_hex(candidate.weights_digest)));
  }
}

void describe_coverage(const Coverage& coverage, std::vector<std::string>& out) {
  if (coverage.candidate_end == FileEnd::cut) out.push_back("the candidate run was cut short");
  if (coverage.golden_end == FileEnd::cut) out.push_back("the golden run was cut short");
  if (coverage.only_golden > 0) {
    out.push_back("the candidate lacks " + steps(coverage.only_golden) +
                  " of the golden, the first is step " +
                  std::to_string(*coverage.first_only_golden));
  }
  if (coverage.only_candidate > 0) {
    out.push_back("the golden lacks " + steps(coverage.only_candidate) +
                  " of the candidate, the first is step " +
                  std::to_string(*coverage.first_only_candidate));
  }
}

std::string identical_part(const Coverage& coverage) {
  return "identical in " + steps(coverage.common_steps) + " from step " +
         std::to_string(*coverage.first_common) + " up to step " +
         std::to_string(*coverage.last_common);
}

}  // namespace

std::string_view to_text(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::identical:
      return "identical";
    case VerdictKind::explained:
      return "explained";
    case VerdictKind::diverged:
      return "diverged";
    case VerdictKind::incomparable:
      return "incomparable";
  }
  return "unknown";
}

int exit_code(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::identical:
      return 0;
    case VerdictKind::explained:
    case VerdictKind::diverged:
      return 1;
    case VerdictKind::incomparable:
      return 3;
  }
  return 3;
}

std::vector<std::string> header_differences(const RunHeader& golden, const RunHeader& candidate,
                                            uint32_t max_ulps) {
  std::vector<std::string> out;
  if (golden.trace_digest != candidate.trace_digest) {
    out.push_back(differ("different trace", digest_hex(golden.trace_digest),
                         digest_hex(candidate.trace_digest)));
  }
  compare_models(golden.model, candidate.model, out);
  if (golden.mode.index_key != candidate.mode.index_key) {
    out.push_back(differ("different index keys", to_text(golden.mode.index_key),
                         to_text(candidate.mode.index_key)) +
                  "; make the golden with the same key type");
  }
  if (max_ulps == 0 && golden.mode.kernels != candidate.mode.kernels) {
    out.push_back(differ("different kernel sets", to_text(golden.mode.kernels),
                         to_text(candidate.mode.kernels)) +
                  "; these agree within a tolerance only, name one");
  }
  return out;
}

Verdict judge(const std::vector<std::string>& differences, const Coverage& coverage,
              const std::optional<Divergence>& divergence, const std::optional<Finding>& numeric,
              bool allow_prefix) {
  Verdict out;
  if (!differences.empty()) return {VerdictKind::incomparable, differences};
  describe_coverage(coverage, out.reasons);
  if (divergence) {
    out.kind = VerdictKind::diverged;
    if (numeric) {
      out.kind = VerdictKind::explained;
      out.reasons.insert(out.reasons.begin(),
                         "the declared reduction shape of `" + divergence->op->name +
                             "` follows the batch, so its bits were bound to change");
    }
    return out;
  }
  if (coverage.common_steps == 0) {
    out.kind = VerdictKind::incomparable;
    out.reasons.insert(out.reasons.begin(), "the runs have no step in common");
  } else if (!coverage.complete()) {
    out.kind = allow_prefix ? VerdictKind::identical : VerdictKind::incomparable;
    out.reasons.push_back(identical_part(coverage));
  }
  return out;
}

}  // namespace redecode
