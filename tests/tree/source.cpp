#include "tests/tree/source.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "traces/check.h"

namespace redecode::tree {
namespace {

namespace fs = std::filesystem;

bool is_skipped_folder(const std::string& path, const std::string& name) {
  return name == ".git" || name == ".cache" || name.starts_with("build") || path == "traces/data";
}

bool is_text(std::string_view path) {
  constexpr std::array<std::string_view, 7> kEndings = {".capnp", ".md",  ".cmake", ".txt",
                                                        ".json",  ".yml", ".sh"};
  if (is_code(path) || path == "dev" || in_folder(path, ".ci")) return true;
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REDECODE_CHECK(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

bool in_folder(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool is_header(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cuh"); }

bool is_code(std::string_view path) {
  return is_header(path) || path.ends_with(".cpp") || path.ends_with(".cu");
}

bool is_build_file(std::string_view path) {
  return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake") ||
         path.ends_with("CMakePresets.json");
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<SourceFile> read_tree(const std::string& root) {
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string path = fs::relative(it->path(), root).generic_string();
    if (it->is_directory()) {
      if (is_skipped_folder(path, it->path().filename().string())) it.disable_recursion_pending();
    } else if (it->is_regular_file() && is_text(path)) {
      files.push_back({path, read_file(it->path())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace redecode::tree
