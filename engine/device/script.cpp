// engine/device/script.cpp - reading and printing scripts, and the order that follows one.
#include "engine/device/script.h"

#include <charconv>

#include "traces/error.h"

namespace redecode {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kMaxScriptBytes) {
      throw Error(ErrorCode::limit, "a script of " + std::to_string(text.size()) +
                                        " bytes is longer than the " +
                                        std::to_string(kMaxScriptBytes) + " allowed");
    }
  }

  bool done() const { return at_ == text_.size(); }

  template <class T>
  T number(const char* what) {
    T value{};
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail(std::string(what) + " is too large");
    if (error != std::errc{}) fail(std::string("expected a number, the ") + what);
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  bool accept(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* between) {
    if (!accept(c)) fail(std::string("expected '") + c + "' between " + between);
  }

  std::vector<ScriptPick> picks() {
    std::vector<ScriptPick> picks;
    bool first = true;
    uint32_t last = 0;
    do {
      const auto choice = number<uint32_t>("choice point");
      if (!first && choice <= last) fail("the choice points of a step must ascend");
      expect('.', "choice point and pick");
      const auto pick = number<uint32_t>("pick");
      if (pick != 0) picks.emplace_back(choice, pick);
      last = choice;
      first = false;
    } while (accept('-'));
    return picks;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::usage,
                message + "; a script is STEP/CHOICE.PICK-CHOICE.PICK;STEP/..., for example " +
                    "41/3.2-17.1;60/0.1",
                "byte " + std::to_string(at_) + " of the script");
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

class ScriptOrder final : public Order {
 public:
  explicit ScriptOrder(Script script) : script_(std::move(script)) { begin_step(0); }

  void begin_step(StepIndex step) override {
    step_ = step;
    choice_ = 0;
    cursor_ = 0;
    const auto found = script_.steps.find(step);
    picks_ = found == script_.steps.end() ? nullptr : &found->second;
  }

  uint32_t choose(uint32_t ready_count) override {
    const uint32_t choice = choice_++;
    if (picks_ == nullptr || cursor_ == picks_->size() || (*picks_)[cursor_].first != choice) {
      return 0;
    }
    const uint32_t pick = (*picks_)[cursor_++].second;
    if (pick >= ready_count) {
      throw Error(ErrorCode::usage, "script no longer fits: step " + std::to_string(step_) +
                                        " choice " + std::to_string(choice) + " picks " +
                                        std::to_string(pick) + " of " +
                                        std::to_string(ready_count) + " ready");
    }
    return pick;
  }

  bool host_paced() const override { return false; }

 private:
  Script script_;
  StepIndex step_ = 0;
  uint32_t choice_ = 0;
  size_t cursor_ = 0;
  const std::vector<ScriptPick>* picks_ = nullptr;
};

}  // namespace

Script parse_script(std::string_view text) {
  Script script;
  Parser parser(text);
  if (parser.done()) return script;
  bool first = true;
  StepIndex last = 0;
  do {
    const auto step = parser.number<StepIndex>("step");
    if (!first && step <= last) parser.fail("steps must ascend");
    parser.expect('/', "step and choice point");
    auto picks = parser.picks();
    if (!picks.empty()) script.steps.emplace(step, std::move(picks));
    last = step;
    first = false;
  } while (parser.accept(';'));
  if (!parser.done()) parser.fail("expected ';', '-' or the end");
  return script;
}

std::vector<ScriptPick> parse_departures(std::string_view text) {
  Parser parser(text);
  if (parser.done()) return {};
  auto picks = parser.picks();
  if (!parser.done()) parser.fail("expected '-' or the end");
  return picks;
}

std::string to_text(const std::vector<ScriptPick>& picks) {
  std::string text;
  for (const auto& [choice, pick] : picks) {
    if (!text.empty()) text += '-';
    text += std::to_string(choice) + '.' + std::to_string(pick);
  }
  return text;
}

std::string to_text(const Script& script) {
  std::string text;
  for (const auto& [step, picks] : script.steps) {
    if (picks.empty()) continue;
    if (!text.empty()) text += ';';
    text += script_entry(step, to_text(picks));
  }
  return text;
}

std::string script_entry(StepIndex step, std::string_view departures) {
  if (departures.empty()) return {};
  return std::to_string(step) + '/' + std::string(departures);
}

std::unique_ptr<Order> script_order(Script script) {
  return std::make_unique<ScriptOrder>(std::move(script));
}

}  // namespace redecode
