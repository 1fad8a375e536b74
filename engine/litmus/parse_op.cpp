// parse_op.cpp - one op of a litmus file.
#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/litmus/line.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr std::pair<std::string_view, LitmusVerb> kVerbs[] = {
    {"alloc", LitmusVerb::alloc},
    {"free", LitmusVerb::free},
    {"k", LitmusVerb::kernel},
    {"k~", LitmusVerb::kernel_before_wait},
    {"k!", LitmusVerb::kernel_all_resident},
    {"rec", LitmusVerb::record},
    {"wait", LitmusVerb::wait},
    {"sync", LitmusVerb::sync},
    {"bake", LitmusVerb::bake},
};

LitmusVerb parse_verb(const LitmusLine& line, std::string_view text) {
  for (const auto& [word, verb] : kVerbs)
    if (word == text) return verb;
  line.fail("unknown verb '" + std::string(text) +
            "'; there are alloc, free, k, k~, k!, rec, wait, sync and bake");
}

std::string name_of(const LitmusLine& line, std::string_view text, const char* what,
                    size_t offset = 0) {
  if (text.size() > litmus_limits::kNameBytes)
    line.fail("a name of more than " + std::to_string(litmus_limits::kNameBytes) + " bytes",
              offset);
  if (!is_litmus_name(text)) line.fail("'" + std::string(text) + "' is no name of " + what, offset);
  return std::string(text);
}

// T, T:ver, T[row], T[row]:ver, each with a '*' before a baked address.
LitmusOperand parse_operand(const LitmusLine& line, std::string_view text, size_t offset) {
  LitmusOperand out;
  if (text.starts_with('*')) {
    out.baked = true;
    text.remove_prefix(1);
    ++offset;
  }
  const size_t open = text.find('['), colon = text.find(':');
  const size_t name_end = std::min({open, colon, text.size()});
  out.buffer = name_of(line, text.substr(0, name_end), "a buffer", offset);
  std::string_view rest = text.substr(name_end);
  offset += name_end;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) line.fail("']' is missing", offset);
    out.row = name_of(line, rest.substr(1, close - 1), "a row", offset + 1);
    rest.remove_prefix(close + 1);
    offset += close + 1;
  }
  if (rest.empty()) return out;
  if (rest.front() != ':') line.fail("':' and a version, or ',' is wanted here", offset);
  out.version = name_of(line, rest.substr(1), "a version", offset + 1);
  return out;
}

std::vector<LitmusOperand> parse_operands(const LitmusLine& line, std::string_view text,
                                          size_t offset) {
  std::vector<LitmusOperand> out;
  for (size_t at = 0; at <= text.size();) {
    size_t end = at;
    for (bool in_row = false; end < text.size() && (in_row || text[end] != ','); ++end) {
      if (text[end] == '[') in_row = true;
      if (text[end] == ']') in_row = false;
    }
    if (end == at) line.fail("an operand is wanted here", offset + at);
    if (out.size() == litmus_limits::kOperands)
      throw Error(ErrorCode::limit,
                  "more than " + std::to_string(litmus_limits::kOperands) + " operands of an op",
                  "line " + std::to_string(line.number()));
    out.push_back(parse_operand(line, text.substr(at, end - at), offset + at));
    at = end + 1;
  }
  return out;
}

void parse_kernel(LitmusLine& line, LitmusOp& op) {
  op.name = name_of(line, line.take("the name of the op").text, "an op");
  bool has_reads = false, has_writes = false;
  while (!line.at_end()) {
    const std::string_view word = line.take("operands").text;
    const bool is_read = word.starts_with("r=");
    if (!is_read && !word.starts_with("w=")) line.fail("r=... or w=... is wanted here");
    bool& seen = is_read ? has_reads : has_writes;
    if (seen) line.fail(std::string(word.substr(0, 2)) + " stands twice; join operands by commas");
    seen = true;
    (is_read ? op.reads : op.writes) = parse_operands(line, word.substr(2), 2);
  }
}

void parse_bake(LitmusLine& line, LitmusOp& op) {
  const std::string_view word = line.take("P=T").text;
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) line.fail("P=T is wanted here");
  op.name = name_of(line, word.substr(0, equals), "a baked address");
  op.target = name_of(line, word.substr(equals + 1), "a buffer", equals + 1);
}

// Names by which such kernels go.
bool says_resident(std::string_view name) {
  for (const std::string_view word : {"resident", "cooperative", "grid_barrier", "grid_sync"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

}  // namespace

DecimalId parse_litmus_id(LitmusLine& line, std::string_view text) {
  DecimalId id;
  const char* const end = text.data() + text.size();
  const auto whole = std::from_chars(text.data(), end, id.whole);
  if (whole.ec != std::errc{} || text.front() == '-')
    line.fail("'" + std::string(text) + "' is no id: a number such as 7 or 7.5 is wanted");
  if (whole.ptr == end) return id;
  const std::string_view fraction(whole.ptr + 1, static_cast<size_t>(end - whole.ptr - 1));
  if (*whole.ptr != '.' || fraction.empty() || fraction.size() > 9)
    line.fail("'" + std::string(text) + "' is no id: a number such as 7 or 7.5 is wanted",
              static_cast<size_t>(whole.ptr - text.data()));
  uint32_t scale = 100'000'000;
  for (const char digit : fraction) {
    if (digit < '0' || digit > '9')
      line.fail("'" + std::string(text) + "' is no id: a number such as 7 or 7.5 is wanted");
    id.billionths += scale * static_cast<uint32_t>(digit - '0');
    scale /= 10;
  }
  return id;
}

LitmusOp parse_litmus_op(LitmusLine& line) {
  LitmusOp op;
  op.line = line.number();
  op.id = parse_litmus_id(line, line.take("the id of an op").text);
  op.actor = name_of(line, line.take("an actor").text, "an actor");
  op.verb = parse_verb(line, line.take("a verb").text);
  switch (op.verb) {
    case LitmusVerb::alloc: {
      op.name = name_of(line, line.take("a buffer").text, "a buffer");
      const std::string_view region = line.take("@REGION").text;
      if (!region.starts_with('@')) line.fail("@REGION is wanted here");
      op.region = name_of(line, region.substr(1), "a region", 1);
      break;
    }
    case LitmusVerb::kernel:
    case LitmusVerb::kernel_before_wait:
    case LitmusVerb::kernel_all_resident:
      parse_kernel(line, op);
      break;
    case LitmusVerb::bake:
      parse_bake(line, op);
      break;
    case LitmusVerb::free:
    case LitmusVerb::record:
    case LitmusVerb::wait:
    case LitmusVerb::sync:
      op.name = name_of(line, line.take("a name").text, "a buffer, event or stream");
      break;
  }
  if (op.verb == LitmusVerb::sync && op.actor != "H") line.fail("only the host, H, can sync");
  const bool host_kernel = op.actor == "H" && (op.verb == LitmusVerb::kernel_before_wait ||
                                               op.verb == LitmusVerb::kernel_all_resident);
  if (host_kernel) line.fail("the host runs plain ops only");
  if (op.verb == LitmusVerb::kernel && op.actor != "H" && says_resident(op.name))
    op.verb = LitmusVerb::kernel_all_resident;
  line.finish();
  return op;
}

}  // namespace redecode
