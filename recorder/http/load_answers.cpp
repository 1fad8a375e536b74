#include "recorder/http/load_answers.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "recorder/http/observe_escapes.h"
#include "traces/digest.h"
#include "traces/error.h"
#include "traces/json_writer.h"
#include "traces/thousands.h"
#include "traces/utf8.h"

namespace redecode {
namespace {

using Value = capnp::json::Value;

[[noreturn]] void corrupt(const std::string& what, const std::string& name) {
  throw Error(ErrorCode::corrupt, what + "; write it with redecode traffic --save", name);
}

std::string text_of(Value::Reader value) {
  const auto text = value.getString();
  return {text.begin(), text.size()};
}

uint32_t number(Value::Reader value, const std::string& name) {
  if (!value.isNumber() || !(value.getNumber() >= 0) || value.getNumber() > UINT32_MAX)
    corrupt("a session or round is no whole number", name);
  return static_cast<uint32_t>(value.getNumber());
}

LoadAnswer answer_of(Value::Reader value, const std::string& name) {
  if (!value.isObject()) corrupt("an answer is no object", name);
  LoadAnswer out;
  std::string digest;
  for (const auto field : value.getObject()) {
    const std::string_view key(field.getName().begin(), field.getName().size());
    if (key == "session") out.session = number(field.getValue(), name);
    if (key == "round") out.round = number(field.getValue(), name);
    if (!field.getValue().isString()) continue;
    if (key == "text") out.text = text_of(field.getValue());
    if (key == "digest") digest = text_of(field.getValue());
  }
  if (digest != digest_hex(digest_text(out.text)))
    corrupt("the digest of session " + std::to_string(out.session) + " round " +
                std::to_string(out.round) + " does not fit its text",
            name);
  return out;
}

// Texts by session and round.
using Sessions = std::map<uint32_t, std::map<uint32_t, const std::string*>>;

Sessions by_session(const std::vector<LoadAnswer>& answers) {
  Sessions out;
  for (const LoadAnswer& answer : answers) out[answer.session][answer.round] = &answer.text;
  return out;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string answers_json(std::vector<LoadAnswer> answers) {
  std::sort(answers.begin(), answers.end(), [](const LoadAnswer& a, const LoadAnswer& b) {
    return std::tie(a.session, a.round) < std::tie(b.session, b.round);
  });
  std::string out = "[";
  for (const LoadAnswer& answer : answers) {
    const std::string text = valid_utf8(answer.text);
    JsonWriter json;
    json.begin_object().member("session", answer.session).member("round", answer.round);
    json.member("digest", digest_hex(digest_text(text))).member("text", text);
    json.end_object();
    out += (out.size() == 1 ? "\n" : ",\n") + json.take();
  }
  return out + "\n]\n";
}

std::vector<LoadAnswer> parse_answers(std::string_view json, const std::string& name) {
  if (json.size() > kMostAnswersBytes)
    throw Error(ErrorCode::limit, "longer than " + with_thousands(kMostAnswersBytes) + " bytes",
                name);
  std::vector<LoadAnswer> out;
  try {
    const std::string text = without_unicode_escapes(json);
    capnp::MallocMessageBuilder message;
    capnp::JsonCodec codec;
    auto root = message.initRoot<Value>();
    codec.decodeRaw(kj::arrayPtr(text.data(), text.size()), root);
    if (!root.isArray()) corrupt("this is no array of answers", name);
    for (const auto value : root.asReader().getArray()) out.push_back(answer_of(value, name));
  } catch (const kj::Exception& e) {
    corrupt(std::string("this is no JSON: ") + e.getDescription().cStr(), name);
  }
  return out;
}

AnswerBook::AnswerBook(const std::vector<LoadAnswer>& answers) {
  for (const LoadAnswer& answer : answers) texts_[{answer.session, answer.round}] = answer.text;
}

void AnswerBook::check(const LoadAnswer& got, bool whole, AnswerChecks& checks) const {
  const auto at = texts_.find({got.session, got.round});
  if (at == texts_.end()) {
    ++checks.unknown;
    return;
  }
  ++(whole ? checks.whole : checks.parts);
  if (whole ? got.text == at->second : at->second.starts_with(got.text)) return;
  if (checks.wrong++ != 0) return;
  checks.first_wrong = "session " + std::to_string(got.session) + " round " +
                       std::to_string(got.round) + (whole ? "" : ", ended early") + ": '" +
                       got.text + "' in place of '" + at->second + "'";
}

AnswerComparison compare_answers(const std::vector<LoadAnswer>& expected,
                                 const std::vector<LoadAnswer>& got) {
  AnswerComparison out;
  const Sessions wanted = by_session(expected), seen = by_session(got);
  for (const auto& [session, rounds] : wanted) {
    const auto found = seen.find(session);
    bool missing = found == seen.end();
    bool differs = false;
    for (const auto& [round, text] : rounds) {
      if (missing) break;
      const auto answer = found->second.find(round);
      missing = answer == found->second.end();
      if (missing || differs || *answer->second == *text) continue;
      differs = true;
      if (out.differing == 0) {
        out.first_session = session;
        out.first_round = round;
      }
    }
    // A difference counts even where a later round is missing.
    if (missing && !differs) {
      ++out.not_compared;
      continue;
    }
    ++out.sessions;
    out.differing += differs ? 1 : 0;
  }
  return out;
}

std::string comparison_text(const AnswerComparison& c, double lower, double upper) {
  const double share =
      c.sessions == 0 ? 0 : static_cast<double>(c.differing) / static_cast<double>(c.sessions);
  char rates[96];
  std::snprintf(rates, sizeof rates, " (%.1f %%, %.1f-%.1f %%)", share * 100, lower * 100,
                upper * 100);
  std::string out = with_thousands(c.differing) + " of " + with_thousands(c.sessions) +
                    " sessions" + rates + " gave another answer";
  if (c.differing != 0)
    out += ", first: session " + std::to_string(c.first_session) + " round " +
           std::to_string(c.first_round);
  if (c.not_compared != 0)
    out += "; " + with_thousands(c.not_compared) + " not compared: an answer is missing";
  return out;
}

}  // namespace redecode
