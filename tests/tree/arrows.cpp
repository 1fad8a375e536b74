#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "tests/tree/rules.h"

namespace redecode::tree {
namespace {

struct Arrow {
  std::string_view folder;
  std::vector<std::string_view> may_include;  // "engine" stands for all of its folders
  bool any = false;
};

// One line a folder; a file belongs to the longest folder that holds it and may include its own.
const std::vector<Arrow>& arrows() {
  static const std::vector<Arrow> kArrows = {
      {"traces", {}},
      {"engine/plan", {"traces"}},
      {"engine/litmus", {"engine/checks", "engine/plan", "traces"}},
      {"engine/checks", {"engine/plan", "traces"}},
      {"engine/explore", {"engine/plan", "traces"}},
      {"engine/repair", {"engine/explore", "engine/plan", "engine/price", "traces"}},
      {"engine/price", {"engine/plan", "traces"}},
      {"engine/timeline", {"engine/plan", "engine/price", "traces"}},
      {"engine/memory", {"engine/plan", "traces"}},
      {"engine/kernels", {"traces"}},
      {"engine/device", {"engine/memory", "engine/plan", "traces"}},
      {"engine/device/sim",
       {"engine/device", "engine/kernels", "engine/memory", "engine/plan", "traces"}},
      {"engine/device/cuda",
       {"engine/device", "engine/kernels", "engine/memory", "engine/plan", "traces"}},
      {"engine/model", {"engine/plan", "engine/kernels", "traces"}},
      {"engine/batcher", {"traces"}},
      {"engine/decoder", {"engine", "traces"}},
      {"recorder", {"traces"}},
      {"recorder/http", {"recorder", "traces"}},
      {"replayer", {"engine", "traces"}},
      {"compare", {"traces"}},
      {"bisect", {"replayer", "compare", "engine", "traces"}},
      {"cli", {}, true},
      {"tests", {}, true},
      {"bench", {}, true},
  };
  return kArrows;
}

const Arrow* arrow_of(std::string_view path) {
  const Arrow* best = nullptr;
  for (const Arrow& arrow : arrows())
    if (in_folder(path, arrow.folder) &&
        (best == nullptr || arrow.folder.size() > best->folder.size()))
      best = &arrow;
  return best;
}

bool allows(const Arrow& from, const Arrow& to) {
  if (from.any || from.folder == to.folder) return true;
  return std::any_of(
      from.may_include.begin(), from.may_include.end(), [&](std::string_view folder) {
        return to.folder == folder || (folder == "engine" && in_folder(to.folder, folder));
      });
}

struct Include {
  size_t line;
  std::string_view path;
  bool quoted;
};

std::optional<Include> include_of(std::string_view line, size_t number) {
  const size_t hash = line.find_first_not_of(' ');
  if (hash == std::string_view::npos || line[hash] != '#') return std::nullopt;
  const size_t word = line.find_first_not_of(' ', hash + 1);
  if (word == std::string_view::npos || !line.substr(word).starts_with("include"))
    return std::nullopt;
  const size_t open = line.find_first_of("\"<", word);
  if (open == std::string_view::npos) return std::nullopt;
  const size_t close = line.find_first_of("\">", open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return Include{number, line.substr(open + 1, close - open - 1), line[open] == '"'};
}

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  size_t number = 0;
  for (const std::string_view line : lines_of(file.text))
    if (const auto include = include_of(line, ++number)) includes.push_back(*include);
  return includes;
}

std::string place(const SourceFile& file, size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

}  // namespace

Offences check_includes(const SourceFile& file) {
  if (!is_code(file.path)) return {};
  Offences offences;
  const Arrow* from = arrow_of(file.path);
  if (from == nullptr) return {place(file, 1) + "its folder has no line in the table of arrows"};
  for (const Include& include : includes_of(file)) {
    if (!include.quoted) continue;
    const std::string path(include.path);
    const Arrow* to = arrow_of(path);
    if (to == nullptr)
      offences.push_back(place(file, include.line) + path + " is not written from the root");
    else if (!allows(*from, *to))
      offences.push_back(place(file, include.line) + std::string(from->folder) +
                         " may not include " + path);
  }
  return offences;
}

Offences check_capnp_is_private(const std::vector<SourceFile>& files) {
  std::set<std::string, std::less<>> private_headers;
  const auto is_private = [&](std::string_view path) {
    return path.starts_with("capnp/") || path.starts_with("kj/") || path.ends_with(".capnp.h") ||
           private_headers.contains(path);
  };
  for (size_t known = files.size() + 1; known != private_headers.size();) {
    known = private_headers.size();
    for (const SourceFile& file : files) {
      if (!in_folder(file.path, "traces") || !is_header(file.path)) continue;
      for (const Include& include : includes_of(file))
        if (is_private(include.path)) private_headers.insert(file.path);
    }
  }
  Offences offences;
  for (const SourceFile& file : files) {
    // recorder/http speaks HTTP and JSON, which are kj's and capnp's; the folder's own headers that
    // others include are free of them.
    if (!is_code(file.path) || in_folder(file.path, "traces") || in_folder(file.path, "tests") ||
        in_folder(file.path, "recorder/http") || in_folder(file.path, "bench"))
      continue;
    for (const Include& include : includes_of(file))
      if (is_private(include.path))
        offences.push_back(place(file, include.line) + std::string(include.path) +
                           " brings Cap'n Proto out of traces");
  }
  return offences;
}

}  // namespace redecode::tree
