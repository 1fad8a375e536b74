#include "traces/finding.h"

#include <array>
#include <utility>

#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr std::array<std::pair<FindingKind, std::string_view>, 8> kKinds = {{
    {FindingKind::race, "race"},
    {FindingKind::use_after_free, "use_after_free"},
    {FindingKind::unwritten, "unwritten"},
    {FindingKind::stale, "stale"},
    {FindingKind::foreign, "foreign"},
    {FindingKind::frozen, "frozen"},
    {FindingKind::numeric, "numeric"},
    {FindingKind::hang, "hang"},
}};

std::string code(std::string_view name) { return '`' + std::string(name) + '`'; }

std::string bytes(uint64_t size_bytes) {
  return with_thousands(size_bytes) + (size_bytes == 1 ? " byte" : " bytes");
}

std::string stream(const FindingSide& side) {
  return side.stream == kHost ? std::string("the host") : "stream " + std::to_string(side.stream);
}

std::string where(const Finding& f) {
  std::string out = "step " + std::to_string(f.step);
  if (f.request != kNoRequest) out += ", request " + std::to_string(f.request);
  return out + ", layer " + std::to_string(f.layer) + ": ";
}

// "`indexer.logits` on stream 2"
std::string actor(const FindingSide& side) { return code(side.op) + " on " + stream(side); }

// "`qkv_a` of layer 4 in step 40": the op with what sets it apart from the finding's own place.
std::string other_op(const Finding& f, const FindingSide& side) {
  std::string out = code(side.op);
  if (side.layer != f.layer) out += " of layer " + std::to_string(side.layer);
  if (side.step != f.step) out += " in step " + std::to_string(side.step);
  return out;
}

std::string_view verb(Access access) {
  switch (access) {
    case Access::read:
      return "reads";
    case Access::write:
      return "writes";
    case Access::update:
      return "updates";
    case Access::scratch:
      return "uses as scratch";
    case Access::none:
      return "is passed";
  }
  return "touches";
}

// What the second side does to bytes that the first side touches.
std::string_view counter_verb(const FindingSide& first, const FindingSide& second) {
  if (second.access == Access::read) return "reads";
  return first.access == Access::read ? "overwrites" : "also writes";
}

// "`indexer.logits` on stream 2 reads 196,608 bytes of `index_q`"
std::string act(const Finding& f, const FindingSide& side) {
  return actor(side) + ' ' + std::string(verb(side.access)) + ' ' + bytes(f.size_bytes) + " of " +
         code(side.buffer);
}

std::string race(const Finding& f) {
  std::string out = where(f) + act(f, f.first) + " that " + other_op(f, f.second) + ' ' +
                    std::string(counter_verb(f.first, f.second)) + " on " + stream(f.second);
  if (f.second.buffer != f.first.buffer) out += " as " + code(f.second.buffer);
  out += "; no edge orders them.";
  if (f.advice.empty() && !f.missing_edge.empty()) out += " Missing edge: " + f.missing_edge + '.';
  return out;
}

// The side that trips over the fault: a reader if there is one, else the later side.
const FindingSide& victim(const Finding& f) {
  if (f.second.op.empty() || (reads(f.first.access) && !reads(f.second.access))) return f.first;
  return f.second;
}
const FindingSide& cause(const Finding& f) { return &victim(f) == &f.first ? f.second : f.first; }

std::string use_after_free(const Finding& f) {
  std::string out = where(f) + act(f, f.first) + " after the host freed it";
  if (!f.second.op.empty()) {
    out += "; " + other_op(f, f.second) + " on " + stream(f.second) + " holds that memory as " +
           code(f.second.buffer);
  }
  return out + '.';
}

std::string unwritten(const Finding& f) {
  const FindingSide& reader = victim(f);
  std::string out = where(f) + act(f, reader) + " that nothing has written since it was allocated";
  if (!cause(f).op.empty()) out += "; " + other_op(f, cause(f)) + " was to write them";
  return out + '.';
}

std::string stale(const Finding& f) {
  const FindingSide& reader = victim(f);
  const FindingSide& writer = cause(f);
  std::string out = where(f) + act(f, reader) + " that still hold ";
  if (writer.op.empty())
    return out + (writer.buffer == reader.buffer ? "the content of before the program."
                                                 : "another buffer's content.");
  out += writer.buffer == reader.buffer ? "older content of it" : code(writer.buffer);
  return out + ", as written by " + other_op(f, writer) + " on " + stream(writer) + '.';
}

std::string canary(const Finding& f) {
  std::string out = where(f) + bytes(f.size_bytes) + " of " + code(f.first.buffer) +
                    " changed in pages that no row of the step may write";
  if (!f.first.op.empty()) out += ", where " + actor(f.first) + " writes";
  return out + '.';
}

std::string foreign(const Finding& f) {
  if (f.check == "canary") return canary(f);
  std::string out = where(f) + act(f, f.first) + " in a KV page that is not ";
  out += f.request == kNoRequest ? std::string("its own row's")
                                 : "request " + std::to_string(f.request) + "'s";
  if (!f.second.op.empty())
    out += "; " + other_op(f, f.second) + " on " + stream(f.second) + " works there";
  return out + '.';
}

std::string frozen(const Finding& f) {
  std::string out = where(f) + actor(f.first) + " runs with what capture froze into the graph";
  if (!f.first.buffer.empty()) out += " for " + code(f.first.buffer);
  return out + ", not with what this step needs.";
}

std::string numeric(const Finding& f) {
  return where(f) + actor(f.first) +
         " sums in an order that follows the batch, so a row's bits depend on its neighbours.";
}

std::string hang(const Finding& f) {
  if (f.first.op.empty() || f.second.op.empty())
    return where(f) + actor(f.first) + " waits for what nothing in the program brings about.";
  return where(f) + actor(f.first) + " needs all of its blocks resident at once, while " +
         other_op(f, f.second) + " on " + stream(f.second) + " may hold the multiprocessors.";
}

std::string statement(const Finding& f) {
  switch (f.kind) {
    case FindingKind::race:
      return race(f);
    case FindingKind::use_after_free:
      return use_after_free(f);
    case FindingKind::unwritten:
      return unwritten(f);
    case FindingKind::stale:
      return stale(f);
    case FindingKind::foreign:
      return foreign(f);
    case FindingKind::frozen:
      return frozen(f);
    case FindingKind::numeric:
      return numeric(f);
    case FindingKind::hang:
      return hang(f);
  }
  return where(f) + "unknown finding.";
}

}  // namespace

std::string_view to_text(FindingKind kind) {
  for (const auto& [k, name] : kKinds)
    if (k == kind) return name;
  return "unknown";
}

std::string_view to_text(Severity severity) {
  return severity == Severity::unusual ? "unusual" : "conflicting";
}

std::string_view check_of(const Finding& finding) {
  if (!finding.check.empty()) return finding.check;
  switch (finding.kind) {
    case FindingKind::race:
      return "race";
    case FindingKind::use_after_free:
      return "pool-lifetime";
    case FindingKind::unwritten:
      return "unwritten";
    case FindingKind::stale:
      return "content-version";
    case FindingKind::foreign:
      return "page-owner";
    case FindingKind::frozen:
      return "frozen-value";
    case FindingKind::numeric:
      return "reduction-shape";
    case FindingKind::hang:
      return "hang";
  }
  return "unknown";
}

bool from_text(std::string_view text, FindingKind& out) {
  for (const auto& [kind, name] : kKinds) {
    if (name == text) {
      out = kind;
      return true;
    }
  }
  return false;
}

std::string sentence(const Finding& finding) {
  std::string out = statement(finding);
  if (!finding.advice.empty()) {
    out += ' ' + finding.advice;
    const char last = out.back();
    if (last != '.' && last != '!' && last != '?') out += '.';
  }
  for (char& c : out)
    if (c == '\n' || c == '\r') c = ' ';
  return out;
}

}  // namespace redecode
