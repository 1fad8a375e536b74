// tests/tree/source.h - the source tree as values, so that rules about it can be tests.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redecode::tree {

// One text file; `path` is relative to the root, with forward slashes.
struct SourceFile {
  std::string path;
  std::string text;
};

// All text files under `root` in path order, without build folders, .git and shipped data.
std::vector<SourceFile> read_tree(const std::string& root);

// True for .h .cpp .cu .cuh.
bool is_code(std::string_view path);
bool is_header(std::string_view path);
// CMakeLists.txt, *.cmake and CMakePresets.json.
bool is_build_file(std::string_view path);
bool in_folder(std::string_view path, std::string_view folder);

std::vector<std::string_view> lines_of(std::string_view text);

// `text` with comments and the contents of literals replaced by spaces; lines keep their places.
std::string code_only(std::string_view text);
// `text` with the contents of raw string literals removed; lines keep their places.
std::string without_raw_strings(std::string_view text);

// A function with a body, found by counting braces.
struct Function {
  size_t first_line = 0;  // of the signature, from 1
  size_t line_count = 0;  // signature to closing brace
  std::string body;       // code only, with the signature
};
std::vector<Function> functions_of(std::string_view text);

// True when `word` stands in `text` with no identifier character right before it, nor right after
// it where the word itself ends in one.
bool has_word(std::string_view text, std::string_view word);

}  // namespace redecode::tree
