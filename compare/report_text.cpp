#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "compare/report.h"
#include "traces/thousands.h"
#include "traces/wrap.h"

namespace redecode {
namespace {

constexpr size_t kLabelColumns = 14, kMaxLines = 5;

std::string count_of(uint64_t count, std::string_view noun) {
  return with_thousands(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::string shortened(const std::string& text) {
  constexpr size_t kMost = 160;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// "  label       text", the text wrapped under itself.
class Lines {
 public:
  void title(std::string_view text) { out_ += '\n' + std::string(text) + '\n'; }
  void entry(std::string_view label, std::string_view text) {
    out_ += wrapped_entry("  " + std::string(label), kLabelColumns, text);
  }
  void raw(std::string_view text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string request_text(RequestId request) {
  return request == kNoRequest ? "no request" : "request " + std::to_string(request);
}

std::string row_text(const CompareResult& result) {
  const Divergence& d = *result.divergence;
  if (d.row == kNoRow) return "not by row";
  std::string out = std::to_string(d.row);
  if (result.padding_row) return out + ", padding";
  if (d.request != kNoRequest) out += ", " + request_text(d.request);
  if (d.position) out += ", position " + std::to_string(*d.position);
  if (result.session) {
    out += ", session " + std::to_string(result.session->session) + " round " +
           std::to_string(result.session->round);
  }
  return out;
}

std::string op_text(const DivergingOp& op) {
  std::string out = '`' + op.name + "`, layer " + std::to_string(op.layer);
  if (op.occurrence > 0) out += ", occurrence " + std::to_string(op.occurrence);
  return out + " (golden: command " + std::to_string(op.golden_command) + " on stream " +
         std::to_string(op.golden_stream) + "; candidate: command " +
         std::to_string(op.candidate_command) + " on stream " +
         std::to_string(op.candidate_stream) + ')';
}

std::string number_text(const std::optional<uint32_t>& bits, const std::string& text,
                        uint32_t size_bytes) {
  if (!bits) return "none";
  char hex[16];
  std::snprintf(hex, sizeof hex, " (%0*x)", static_cast<int>(2 * size_bytes), *bits);
  return text + hex;
}

std::string distance_text(uint32_t ulps) {
  return ulps == UINT32_MAX ? "number against NaN" : count_of(ulps, "ulp");
}

std::string place_text(const Divergence& d) {
  switch (d.place) {
    case Place::op:
      return "output of an op";
    case Place::rows:
      if (!d.found_digest) return "a row of the golden is missing in the candidate";
      if (!d.expected_digest) return "a row of the candidate is not in the golden";
      return "the row belongs to another request or position";
    case Place::logits:
      return "logits";
    case Place::log_sum_exp:
      return "log-sum-exp of the logits";
    case Place::digest:
      return "digest of the logits; all that was stored of them agrees";
    case Place::token:
      return "sampled token, from logits that agree";
  }
  return "unknown";
}

void write_numbers(const Divergence& d, Lines& out) {
  if (d.element) {
    std::string text = with_thousands(*d.element);
    if (d.elements_differing > 0) {
      text += ", the first of " + with_thousands(d.elements_differing) + " that differ";
      if (d.largest_ulps != UINT32_MAX)
        text += ", by at most " + count_of(d.largest_ulps, "ulp");
      else
        text += ", some number against NaN";
    }
    out.entry("element", text);
  }
  if (d.expected_bits || d.found_bits) {
    out.entry("expected", number_text(d.expected_bits, d.expected_text, d.element_size_bytes));
    std::string found = number_text(d.found_bits, d.found_text, d.element_size_bytes);
    if (d.expected_bits && d.found_bits) found += ", " + distance_text(d.distance_ulps);
    out.entry("found", found);
  } else if (d.expected_digest && d.found_digest) {
    out.entry("expected", "digest " + digest_hex(*d.expected_digest));
    out.entry("found", "digest " + digest_hex(*d.found_digest));
  }
}

void write_divergence(const CompareResult& result, Lines& out) {
  const Divergence& d = *result.divergence;
  out.title("first divergence");
  out.entry("step", std::to_string(d.step));
  out.entry("row", row_text(result));
  out.entry("where", place_text(d));
  if (d.op) out.entry("op", op_text(*d.op));
  write_numbers(d, out);
  if (d.expected_token && d.found_token) {
    out.entry("token", d.token_differs() ? "expected " + std::to_string(*d.expected_token) +
                                               ", found " + std::to_string(*d.found_token)
                                         : std::to_string(*d.expected_token) + " in both");
  }
  out.entry("its step", with_thousands(result.rows_differing) + " of " +
                            count_of(result.rows_compared, "row") + " with output differ, " +
                            count_of(result.tokens_differing, "token"));
  if (!result.candidate_order.empty()) out.entry("order", shortened(result.candidate_order));
  if (!result.divergence_probed) {
    out.entry("look inside", "replay both runs with --steps " + std::to_string(d.step) +
                                 " --probe ops and compare again to see the op");
  }
}

void write_explanation(const CompareResult& result, Lines& out) {
  out.title("explanation");
  if (result.explanation) {
    out.entry(to_text(result.explanation->finding.kind), sentence(result.explanation->finding));
    out.entry("matched", std::string(describe(result.explanation->match)) + "; " +
                             count_of(result.findings_total, "finding") + " in the candidate");
  } else if (result.findings_total > 0) {
    out.entry("none", "the candidate's " + count_of(result.findings_total, "finding") +
                          " come after the divergence");
  } else {
    out.entry("none", "the candidate holds no finding; replay it with the checks on");
  }
  if (result.findings_dropped > 0)
    out.entry("left off", count_of(result.findings_dropped, "older finding"));
}

std::string label_text(const RowLabel& label) {
  std::string out;
  if (label.has_nan) out += "holds NaN; ";
  if (label.has_infinity) out += "holds infinities; ";
  if (!label.donor) return out + "equals no row of the golden";
  const Donor& donor = *label.donor;
  out += "equals " + request_text(donor.request) + " at position " +
         std::to_string(donor.position) + " (row " + std::to_string(donor.row) + " of ";
  return out + (donor.step == label.step ? "the same step" : "step " + std::to_string(donor.step)) +
         ')';
}

void write_labels(const CompareResult& result, Lines& out) {
  if (result.labels.empty()) return;
  out.title("whose data is it");
  size_t written = 0;
  for (const RowLabel& label : result.labels) {
    if (written++ == kMaxLines) break;
    out.entry("row " + std::to_string(label.row),
              request_text(label.request) + ": " + label_text(label));
  }
  if (result.labels.size() > kMaxLines)
    out.entry("and", count_of(result.labels.size() - kMaxLines, "more row"));
}

void write_session_list(const SessionSummary& s, Lines& out) {
  std::string list;
  size_t written = 0;
  for (const SessionCount& session : s.sessions) {
    if (!session.first_corrupted_step) continue;
    if (written++ == kMaxLines) {
      list += ", ...";
      break;
    }
    list += (list.empty() ? "" : ", ") + std::to_string(session.session) + " from step " +
            std::to_string(*session.first_corrupted_step);
  }
  if (!list.empty()) out.entry("which", list);
}

void write_sessions(const CompareResult& result, Lines& out) {
  const SessionSummary& s = result.sessions;
  out.title("counts");
  if (result.sessions_known) {
    out.entry("sessions", with_thousands(s.sessions.size()) + " x " + count_of(s.rounds, "round") +
                              ": " + with_thousands(s.max_rounds_reached) + " reached the last, " +
                              with_thousands(s.errors) + " failed");
    out.entry("corrupted", rate_text(s.corrupted, s.sessions.size()));
    write_session_list(s, out);
  }
  out.entry("requests", with_thousands(s.requests) + ", " + with_thousands(s.requests_corrupted) +
                            " with a wrong token, " + with_thousands(s.requests_differing) +
                            " with a different bit");
  out.entry("rows", with_thousands(s.rows_compared) + ", " + with_thousands(s.tokens_differing) +
                        " with a wrong token, " + with_thousands(s.rows_differing) +
                        " with a different bit");
  if (result.ops_probed) {
    out.entry("ops", with_thousands(result.ops_compared) + " matched, " +
                         with_thousands(result.ops_unmatched_golden) + " only in the golden, " +
                         with_thousands(result.ops_unmatched_candidate) + " only in the candidate");
  }
}

void write_head(const CompareResult& result, Lines& out) {
  std::string verdict(to_text(result.verdict.kind));
  if (result.divergence) {
    verdict += " at step " + std::to_string(result.divergence->step);
    if (result.divergence->request != kNoRequest)
      verdict += ", " + request_text(result.divergence->request);
  } else if (result.verdict.kind == VerdictKind::identical) {
    verdict += ": " + count_of(result.coverage.common_steps, "step") + ", " +
               count_of(result.sessions.rows_compared, "row");
  }
  out.entry("verdict", verdict);
  for (const std::string& reason : result.verdict.reasons) out.entry("", reason);
  if (result.max_ulps > 0) {
    out.entry("tolerance",
              count_of(result.max_ulps, "ulp") + "; digests and op probes were not judged");
  }
  out.entry("golden", describe(result.golden.mode));
  out.entry("candidate", describe(result.candidate.mode));
  out.entry("model", result.golden.model.spec);
}

}  // namespace

std::string report_text(const CompareResult& result) {
  Lines out;
  write_head(result, out);
  if (result.verdict.kind == VerdictKind::incomparable && result.coverage.common_steps == 0)
    return out.take();
  if (result.divergence) {
    write_divergence(result, out);
    write_explanation(result, out);
    write_labels(result, out);
  }
  write_sessions(result, out);
  return out.take();
}

}  // namespace redecode
