#include <algorithm>

#include "engine/litmus/line.h"
#include "engine/litmus/litmus.h"

namespace redecode {
namespace {

bool is_op(std::string_view word) { return word.front() >= '0' && word.front() <= '9'; }

// First word of the op that an op line or a fix line holds; npos: neither.
size_t op_at(const std::vector<LitmusWord>& words) {
  if (is_op(words[0].text)) return 0;
  return words[0].text == "fix" && words.size() > 3 ? 2 : std::string_view::npos;
}

struct Widths {
  size_t id = 1, actor = 1;
};

std::string padded(std::string_view text, size_t width) {
  std::string out(text);
  out.append(width - std::min(width, text.size()), ' ');
  return out;
}

std::string code_of(const std::vector<LitmusWord>& words, const Widths& widths) {
  std::string out;
  const size_t op = op_at(words);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!out.empty()) out += ' ';
    if (i == op && op == 0)
      out += padded(words[i].text, widths.id);
    else if (i == op + 1 && op == 0)
      out += padded(words[i].text, widths.actor);
    else
      out += words[i].text;
  }
  return out;
}

}  // namespace

std::string format_litmus(std::string_view text, const std::string& name) {
  parse_litmus(text, name);
  std::vector<LitmusLine> lines;
  uint32_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    lines.emplace_back(text.substr(from, end - from), name, ++number);
    from = end + 1;
  }
  Widths widths;
  for (const LitmusLine& line : lines) {
    if (line.empty() || op_at(line.words()) != 0) continue;
    widths.id = std::max(widths.id, line.words()[0].text.size());
    widths.actor = std::max(widths.actor, line.words()[1].text.size());
  }
  std::string out;
  bool blank = true;
  for (const LitmusLine& line : lines) {
    std::string code = line.empty() ? "" : code_of(line.words(), widths);
    std::string_view comment = line.comment();
    comment = comment.substr(0, comment.find_last_not_of(" \t\r") + 1);
    if (!comment.empty()) code.append(code.empty() ? "" : "  ").append(comment);
    if (code.empty() && blank) continue;
    blank = code.empty();
    out += code + '\n';
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace redecode
