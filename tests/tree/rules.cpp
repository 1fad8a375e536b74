#include "tests/tree/rules.h"

#include <algorithm>
#include <cctype>

namespace redecode::tree {
namespace {

std::string place(const SourceFile& file, size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

size_t columns_of(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;  // not a UTF-8 continuation
  }));
}

// Offences for every line of `text` that has one of `words`.
Offences find_words(const SourceFile& file, std::string_view text,
                    const std::vector<std::string>& words, std::string_view why) {
  Offences offences;
  size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    for (const std::string& word : words)
      if (has_word(line, word))
        offences.push_back(place(file, number) + word + " " + std::string(why));
  }
  return offences;
}

void append(Offences& to, const Offences& from) { to.insert(to.end(), from.begin(), from.end()); }

// "std::map<const Node*, ..." and the like: an order that follows addresses.
bool has_pointer_key(std::string_view line) {
  for (const std::string_view container : {"std::map<", "std::set<", "std::multimap<"}) {
    for (size_t at = line.find(container); at != std::string_view::npos;
         at = line.find(container, at + 1)) {
      const std::string_view key = line.substr(at + container.size());
      size_t end = 0, depth = 0;
      for (; end < key.size(); ++end) {
        if (depth == 0 && (key[end] == ',' || key[end] == '>')) break;
        if (key[end] == '<') ++depth;
        if (key[end] == '>') --depth;
      }
      if (key.substr(0, end).ends_with('*')) return true;
    }
  }
  return false;
}

}  // namespace

Offences check_file_length(const SourceFile& file) {
  if (!is_code(file.path) && !file.path.ends_with(".capnp")) return {};
  const size_t count = lines_of(file.text).size();
  if (count <= kMaxFileLines) return {};
  return {place(file, count) + "over " + std::to_string(kMaxFileLines) + " lines"};
}

Offences check_function_length(const SourceFile& file) {
  if (!is_code(file.path)) return {};
  Offences offences;
  for (const Function& function : functions_of(file.text))
    if (function.line_count > kMaxFunctionLines)
      offences.push_back(place(file, function.first_line) + "a function of " +
                         std::to_string(function.line_count) + " lines");
  return offences;
}

Offences check_columns(const SourceFile& file) {
  if (!is_code(file.path)) return {};
  Offences offences;
  size_t number = 0;
  const std::string text = without_raw_strings(file.text);
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (columns_of(line) > kMaxColumns)
      offences.push_back(place(file, number) + std::to_string(columns_of(line)) + " columns");
  }
  return offences;
}

Offences check_tabs(const SourceFile& file) {
  if (!is_code(file.path) && !is_build_file(file.path) && !file.path.ends_with(".capnp")) return {};
  return find_words(file, file.text, {"\t"}, "(tab)");
}

Offences check_header_opening(const SourceFile& file) {
  if (!is_header(file.path)) return {};
  Offences offences;
  // The C ABI is read by C99 compilers too: block comments and an include guard.
  const bool is_c = file.text.starts_with("/*");
  const std::string opening = (is_c ? "/* " : "// ") + file.path + " - ";
  if (!file.text.starts_with(opening) ||
      std::isspace(static_cast<unsigned char>(file.text[opening.size()])) != 0)
    offences.push_back(place(file, 1) + "does not start with \"" + opening + "purpose\"");
  const auto lines = lines_of(file.text);
  const bool guarded = is_c && file.text.find("#ifndef REDECODE_") != std::string::npos;
  if (!guarded && std::find(lines.begin(), lines.end(), "#pragma once") == lines.end())
    offences.push_back(place(file, 1) + "has no #pragma once");
  return offences;
}

Offences check_determinism(const SourceFile& file) {
  const auto in = [&](std::string_view folder) { return in_folder(file.path, folder); };
  if (!is_code(file.path) || !(in("engine") || in("traces") || in("replayer") || in("compare")))
    return {};
  const std::string code = code_only(file.text);
  Offences offences =
      find_words(file, code,
                 {"rand(", "srand(", "random_device", "<random>", "mt19937", "system_clock",
                  "time(nullptr)", "time(NULL)", "gettimeofday", "clock_gettime", "<unordered_map>",
                  "<unordered_set>", "unordered_map", "unordered_set", "std::execution"},
                 "is not replayable");
  if (!in("replayer"))
    append(offences,
           find_words(file, code, {"steady_clock", "high_resolution_clock"}, "is not replayable"));
  // Exec takes one a kernel; inside the kernels a call through it would cost more than it does.
  if (in("engine/kernels") && !file.path.starts_with("engine/kernels/exec."))
    append(offences, find_words(file, code, {"std::function"}, "does not belong in a hot path"));
  size_t number = 0;
  for (const std::string_view line : lines_of(code)) {
    ++number;
    if (has_pointer_key(line)) offences.push_back(place(file, number) + "is ordered by addresses");
  }
  return offences;
}

Offences check_exact_flags(const SourceFile& file) {
  if (!is_build_file(file.path)) return {};
  return find_words(file, file.text,
                    {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffp-contract=fast",
                     "-fassociative-math", "use_fast_math"},
                    "changes the arithmetic");
}

// Words are split here so that this file does not break its own rule.
Offences check_words(const SourceFile& file) {
  Offences offences = find_words(file, file.text,
                                 {"TO"
                                  "DO",
                                  "FIX"
                                  "ME",
                                  "X"
                                  "XX"},
                                 "marks an unfinished place");
  append(offences, find_words(file, file.text,
                              {"/wo"
                               "rk/",
                               "/tm"
                               "p/"},
                              "is a path of one machine"));
  append(offences, find_words(file, file.text,
                              {"deb.deb"
                               "ian.org",
                               "pypi"
                               ".org",
                               "npmjs"
                               ".org"},
                              "is a package host"));
  return offences;
}

// Split, so that this file does not break its own rule.
Offences check_test_names(const SourceFile& file) {
  if (!is_code(file.path)) return {};
  return find_words(file, file.text,
                    {"TEST_CASE(\"-"
                     "-"},
                    "is taken for an option when ctest passes the name on");
}

Offences check_fault_is_not_asked_for(const SourceFile& file) {
  const bool engine = in_folder(file.path, "engine");
  if (!is_code(file.path) ||
      !(engine || in_folder(file.path, "replayer") || in_folder(file.path, "cli")))
    return {};
  const std::string_view key = engine ? "IndexKeyType::" : "IndexKeyType::bf16";
  Offences offences;
  for (const Function& function : functions_of(file.text)) {
    const bool asks = has_word(function.body, key) && (has_word(function.body, "CaptureMode::") ||
                                                       has_word(function.body, "StreamMode::"));
    if (asks)
      offences.push_back(place(file, function.first_line) +
                         "a function asks for index key type and capture or streams together");
  }
  return offences;
}

}  // namespace redecode::tree
