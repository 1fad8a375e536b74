// A scanner for just enough C++ to tell code from comments and literals, and functions from the
// rest.
#include <algorithm>
#include <cctype>

#include "tests/tree/source.h"

namespace redecode::tree {
namespace {

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

enum class Kind { code, comment, literal, raw };

struct Token {
  Kind kind;
  size_t size;
};

size_t quoted_size(std::string_view rest) {
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '\\') {
      ++i;
    } else if (rest[i] == rest[0]) {
      return i + 1;
    } else if (rest[i] == '\n') {
      return i;
    }
  }
  return rest.size();
}

size_t raw_size(std::string_view rest) {
  const size_t open = rest.find('(');
  if (open == std::string_view::npos) return rest.size();
  const std::string close = ")" + std::string(rest.substr(2, open - 2)) + "\"";
  const size_t end = rest.find(close, open);
  return end == std::string_view::npos ? rest.size() : end + close.size();
}

// The quote at `at` separates digits: 1'000.
bool separates_digits(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && (is_identifier(text[begin - 1]) || text[begin - 1] == '\'')) --begin;
  return begin < at && std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
}

Token next_token(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return {Kind::comment, std::min(rest.find('\n'), rest.size())};
  if (rest.starts_with("/*")) {
    const size_t end = rest.find("*/", 2);
    return {Kind::comment, end == std::string_view::npos ? rest.size() : end + 2};
  }
  if (rest.starts_with("R\"") && (at == 0 || !is_identifier(text[at - 1])))
    return {Kind::raw, raw_size(rest)};
  if (rest[0] == '"') return {Kind::literal, quoted_size(rest)};
  if (rest[0] == '\'' && !separates_digits(text, at)) return {Kind::literal, quoted_size(rest)};
  return {Kind::code, 1};
}

// Preprocessor lines, with their continuations, as spaces.
void blank_directives(std::string& code) {
  bool in_directive = false;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size());
    const size_t first = code.find_first_not_of(' ', at);
    if (in_directive || (first < end && code[first] == '#')) {
      in_directive = end > at && code[end - 1] == '\\';
      std::fill(code.begin() + at, code.begin() + end, ' ');
    }
    at = end + 1;
  }
}

// Whether the text between the last statement and an opening brace is a function's signature.
bool is_signature(std::string_view head) {
  const size_t paren = head.find('(');
  if (paren == std::string_view::npos || head.find(')') == std::string_view::npos) return false;
  const std::string_view before = head.substr(0, paren);
  if (before.find('=') != std::string_view::npos && !has_word(before, "operator")) return false;
  for (const std::string_view word : {"namespace", "class", "struct", "union", "enum"})
    if (has_word(before, word) && !has_word(before, "template")) return false;
  return true;
}

}  // namespace

bool has_word(std::string_view text, std::string_view word) {
  const bool ends_in_word = is_identifier(word.back());
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool left = at == 0 || !is_identifier(word[0]) || !is_identifier(text[at - 1]);
    const bool right = !ends_in_word || end == text.size() || !is_identifier(text[end]);
    if (left && right) return true;
  }
  return false;
}

std::string code_only(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    const Token token = next_token(text, at);
    if (token.kind != Kind::code)
      std::replace_if(
          out.begin() + at, out.begin() + at + token.size, [](char c) { return c != '\n'; }, ' ');
    at += token.size;
  }
  return out;
}

std::string without_raw_strings(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Token token = next_token(text, at);
    const std::string_view piece = text.substr(at, token.size);
    if (token.kind == Kind::raw)
      out.append(static_cast<size_t>(std::count(piece.begin(), piece.end(), '\n')), '\n');
    else
      out += piece;
    at += token.size;
  }
  return out;
}

std::vector<Function> functions_of(std::string_view text) {
  std::string code = code_only(text);
  blank_directives(code);
  std::vector<Function> functions;
  size_t head = 0, function_begin = 0, depth = 0;  // depth > 0: inside a function
  for (size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    if (c == '{') {
      if (depth > 0) {
        ++depth;
      } else if (is_signature(std::string_view(code).substr(head, at - head))) {
        function_begin = std::min(code.find_first_not_of(" \n", head), at);
        depth = 1;
      }
    } else if (c == '}' && depth > 0 && --depth == 0) {
      const std::string body = code.substr(function_begin, at + 1 - function_begin);
      const auto newlines = [&](size_t from, size_t to) {
        return static_cast<size_t>(std::count(code.begin() + from, code.begin() + to, '\n'));
      };
      functions.push_back(
          {newlines(0, function_begin) + 1, newlines(function_begin, at) + 1, body});
    }
    if (depth == 0 && (c == '{' || c == '}' || c == ';')) head = at + 1;
  }
  return functions;
}

}  // namespace redecode::tree
