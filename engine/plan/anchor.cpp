#include "engine/plan/anchor.h"

#include <charconv>

#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

bool is_op(CommandKind kind) {
  return kind == CommandKind::launch || kind == CommandKind::copy || kind == CommandKind::fill ||
         kind == CommandKind::host;
}

bool same_op(const Command& a, const Command& b) {
  return is_op(a.kind) && a.name == b.name && a.layer == b.layer;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kMaxPrecedenceBytes)
      throw Error(ErrorCode::limit,
                  "an order of more than " + std::to_string(kMaxPrecedenceBytes) + " bytes");
  }

  PrecedenceScript run() {
    PrecedenceScript out;
    if (text_.empty()) fail("empty");
    do {
      auto& pairs = entry(out);
      do {
        Precedence p;
        p.first = anchor();
        expect('<');
        p.then = anchor();
        pairs.push_back(std::move(p));
      } while (accept(','));
    } while (accept(';'));
    if (at_ != text_.size()) fail("',', ';' or the end is wanted");
    return out;
  }

 private:
  std::vector<Precedence>& entry(PrecedenceScript& out) {
    if (accept('*')) {
      if (!out.every_step.empty() || !out.steps.empty()) fail("* stands first, and once");
      expect('/');
      return out.every_step;
    }
    const auto step = number<StepIndex>("a step or *");
    if (!out.steps.empty() && step <= out.steps.rbegin()->first) fail("steps must ascend");
    expect('/');
    return out.steps[step];
  }

  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "' is wanted");
  }

  template <class T>
  T number(const char* what) {
    T value{};
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail(std::string(what) + " is wanted, a number");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  OpAnchor anchor() {
    OpAnchor out;
    const size_t end = std::min(text_.find_first_of("@#<,;/", at_), text_.size());
    if (end == at_) fail("the name of an op is wanted");
    out.name = text_.substr(at_, end - at_);
    at_ = end;
    if (accept('@')) out.layer = number<uint32_t>("a layer");
    if (accept('#')) out.ordinal = number<uint32_t>("an ordinal");
    return out;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::usage,
                what +
                    "; such an order is before:STEP/A<B,C<D;STEP/..., for example "
                    "before:196/qkv_a@4<indexer.logits@3",
                "byte " + std::to_string(at_) + " of the order");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_text(const OpAnchor& anchor) {
  std::string out = anchor.name;
  if (anchor.layer != 0) out += '@' + std::to_string(anchor.layer);
  if (anchor.ordinal != 0) out += '#' + std::to_string(anchor.ordinal);
  return out;
}

OpAnchor anchor_of(const Program& program, uint32_t command) {
  const Command& c = program.commands[command];
  REDECODE_CHECK(is_op(c.kind));
  OpAnchor out{std::string((*program.names)[c.name]), c.layer, 0};
  for (uint32_t i = 0; i < command; ++i)
    if (same_op(program.commands[i], c)) ++out.ordinal;
  return out;
}

std::optional<uint32_t> find_op(const Program& program, const OpAnchor& anchor) {
  uint32_t left = anchor.ordinal;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    if (!is_op(c.kind) || c.layer != anchor.layer || (*program.names)[c.name] != anchor.name)
      continue;
    if (left-- == 0) return i;
  }
  return std::nullopt;
}

PrecedenceScript parse_precedences(std::string_view text) { return Parser(text).run(); }

std::string to_text(const PrecedenceScript& script) {
  std::string out;
  const auto add = [&](const std::string& step, const std::vector<Precedence>& pairs) {
    if (pairs.empty()) return;
    if (!out.empty()) out += ';';
    out += step + '/';
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (i > 0) out += ',';
      out += to_text(pairs[i].first) + '<' + to_text(pairs[i].then);
    }
  };
  add("*", script.every_step);
  for (const auto& [step, pairs] : script.steps) add(std::to_string(step), pairs);
  return out;
}

}  // namespace redecode
