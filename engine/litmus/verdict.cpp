#include "engine/litmus/verdict.h"

#include <algorithm>

#include "engine/checks/classify.h"
#include "engine/checks/hang.h"

namespace redecode {
namespace {

std::string actor_of(uint32_t stream, const LitmusProgram& litmus) {
  return stream == kHost ? std::string("H") : litmus.streams[stream];
}

// "`consume` (7 on M)"
std::string op_of(const FindingSide& side, const LitmusProgram& litmus) {
  if (side.op.empty()) return "the content of before the program";
  return "`" + side.op + "` (" + to_text(litmus.ids[side.command]) + " on " +
         actor_of(side.stream, litmus) + ")";
}

std::string content_of(const FindingSide& side, const LitmusProgram& litmus) {
  std::string out = "`" + side.buffer + "`";
  if (side.version != 0) out += " as `" + litmus.versions[side.version - 1] + "`";
  return out;
}

std::string_view verb(Access access) { return access == Access::read ? "reads" : "writes"; }

// Words of the engine's own advice speak of stream numbers: here they have names.
std::string race_advice(const Finding& f, const LitmusProgram& litmus) {
  const FindingSide &a = f.first, &b = f.second;
  if (b.stream == kHost)
    return "Let the host sync " + actor_of(a.stream, litmus) + " before " + op_of(b, litmus);
  const Command& later = litmus.program.commands[b.command];
  const bool host_first = a.stream == kHost;
  if (host_first)
    return "Let " + actor_of(b.stream, litmus) + " wait for what the host did in " +
           op_of(a, litmus);
  if (later.before_wait && a.stream == b.stream)
    return "Wait for the kernel before it (griddepcontrol.wait) before " + op_of(b, litmus) +
           " touches it";
  std::string text = "Record an event on " + actor_of(a.stream, litmus) + " after " +
                     op_of(a, litmus) + " and let " + actor_of(b.stream, litmus) +
                     " wait for it before " + op_of(b, litmus);
  if (a.buffer != b.buffer && a.generation != 0 && b.generation != 0)
    text += ", or record_stream `" + a.buffer + "` on " + actor_of(a.stream, litmus) +
            ", or free it after the join";
  return text;
}

std::string stale_sentence(const Finding& f, const LitmusProgram& litmus) {
  std::string out =
      op_of(f.second, litmus) + " reads " + content_of(f.second, litmus) + ", but finds ";
  out += f.first.version != 0 ? "`" + litmus.versions[f.first.version - 1] + "`"
                              : std::string("other content");
  if (f.first.op.empty()) return out + " of before the program. ";
  out += " of " + op_of(f.first, litmus);
  if (f.first.buffer != f.second.buffer) out += ", written as `" + f.first.buffer + "`";
  return out + ". ";
}

}  // namespace

std::vector<Finding> check_litmus(const LitmusProgram& litmus) {
  std::vector<Finding> findings;
  HazardChecker checker(RacePairs::all);
  checker.add(0, litmus.program, litmus.extents, Submission::eager, findings);
  check_hangs(0, litmus.program, Submission::eager, findings);
  name_checks(0, litmus.program, findings);
  return findings;
}

std::vector<LitmusExpect> verdicts_of(const std::vector<Finding>& findings,
                                      const LitmusProgram& litmus) {
  std::vector<LitmusExpect> out;
  for (const Finding& f : findings) {
    if (f.severity != Severity::conflicting) continue;
    const auto first = litmus.ids[f.first.command];
    switch (f.kind) {
      case FindingKind::race: {
        const auto second = litmus.ids[f.second.command];
        out.push_back({LitmusVerdict::race, std::min(first, second), std::max(first, second)});
        break;
      }
      case FindingKind::stale:
        out.push_back({LitmusVerdict::prov, litmus.ids[f.second.command], {}});
        break;
      case FindingKind::unwritten:
        out.push_back({LitmusVerdict::uninit, first, {}});
        break;
      case FindingKind::use_after_free:
        out.push_back({LitmusVerdict::uaf, first, {}});
        break;
      case FindingKind::hang:
        out.push_back({LitmusVerdict::live, {}, {}});
        break;
      default:
        break;
    }
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

std::string litmus_sentence(const Finding& f, const LitmusProgram& litmus) {
  switch (f.kind) {
    case FindingKind::race:
      return op_of(f.second, litmus) + " " + std::string(verb(f.second.access)) + " " +
             content_of(f.second, litmus) + " while " + op_of(f.first, litmus) + " " +
             std::string(verb(f.first.access)) + " " + content_of(f.first, litmus) +
             "; no edge orders them. " + race_advice(f, litmus) + ".";
    case FindingKind::stale:
      return stale_sentence(f, litmus) + f.advice + ".";
    case FindingKind::unwritten:
      return op_of(f.first, litmus) + " reads " + content_of(f.first, litmus) +
             ", which nothing has written since it was allocated. " + f.advice + ".";
    case FindingKind::use_after_free:
      return op_of(f.first, litmus) + " " + std::string(verb(f.first.access)) + " " +
             content_of(f.first, litmus) + ", whose memory is no longer its own. Free it after " +
             op_of(f.first, litmus) + ", or keep its address out of the graph.";
    default:
      break;
  }
  std::string out = op_of(f.first, litmus);
  out += f.second.op.empty() ? " waits for what nothing brings about. "
                             : " needs all of its blocks resident, while " +
                                   op_of(f.second, litmus) + " may hold the multiprocessors. ";
  return out + f.advice + ".";
}

LitmusReport report_litmus(const Litmus& litmus, const std::string& path) {
  LitmusReport report;
  report.path = path;
  report.name = litmus.name;
  report.scope = litmus.scope;
  const LitmusProgram program = lower(litmus);
  report.findings = check_litmus(program);
  for (const Finding& f : report.findings) report.sentences.push_back(litmus_sentence(f, program));
  report.found = verdicts_of(report.findings, program);
  report.has_expectation = !litmus.expects.empty();
  for (const LitmusExpect& e : litmus.expects) {
    report.only_values_show = report.only_values_show || e.verdict == LitmusVerdict::num;
    if (e.verdict != LitmusVerdict::num && e.verdict != LitmusVerdict::quiet)
      report.expected.push_back(e);
  }
  std::ranges::sort(report.expected);
  report.has_fix = !litmus.fixes.empty();
  if (report.has_fix) {
    const LitmusProgram fixed = lower(with_fixes(litmus));
    const std::vector<Finding> left = check_litmus(fixed);
    report.fixed_found = verdicts_of(left, fixed);
    for (const Finding& f : left)
      if (f.severity == Severity::conflicting)
        report.fixed_sentences.push_back(litmus_sentence(f, fixed));
  }
  return report;
}

}  // namespace redecode
