#include "traces/wrap.h"

#include <algorithm>

namespace redecode {
namespace {

void finish(std::string& out, std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line + '\n';
}

}  // namespace

std::string wrapped_entry(std::string_view label, size_t label_columns, std::string_view text) {
  std::string out;
  std::string line(label);
  line.resize(std::max(line.size() + 1, label_columns), ' ');
  size_t empty = line.size();
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (line.size() + end > kReportColumns && line.size() > empty) {
      finish(out, line);
      line.assign(label_columns, ' ');
      empty = line.size();
    }
    line += std::string(text.substr(0, end)) + ' ';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  finish(out, line);
  return out;
}

}  // namespace redecode
