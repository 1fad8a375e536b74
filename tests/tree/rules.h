// tests/tree/rules.h - what must hold in every file of the tree, one function a rule.
//
// Each rule takes one file (where not said otherwise) and returns its offences as "path:line:
// what", empty when the file is right. Files that a rule does not concern are right.
#pragma once
#include <string>
#include <vector>

#include "tests/tree/source.h"

namespace redecode::tree {

using Offences = std::vector<std::string>;

inline constexpr size_t kMaxFileLines = 600;
inline constexpr size_t kMaxFunctionLines = 70;
inline constexpr size_t kMaxColumns = 100;

// Quoted includes are written from the root and follow the arrows of ARCHITECTURE.md.
Offences check_includes(const SourceFile& file);
// Cap'n Proto stays behind traces/: no other folder includes it, nor a header of traces/ that does.
// Tests may. Takes all files, since one header may include another.
Offences check_capnp_is_private(const std::vector<SourceFile>& files);
Offences check_file_length(const SourceFile& file);
Offences check_function_length(const SourceFile& file);
Offences check_columns(const SourceFile& file);
Offences check_tabs(const SourceFile& file);
// A header starts with "// its/path.h - purpose" and has #pragma once.
Offences check_header_opening(const SourceFile& file);
// Nothing that is replayed may ask chance, a clock or the order of addresses.
Offences check_determinism(const SourceFile& file);
// No compiler flag may change the arithmetic.
Offences check_exact_flags(const SourceFile& file);
// No test case whose name a runner would take for an option.
Offences check_test_names(const SourceFile& file);
// No unfinished places, paths of one machine or package hosts.
Offences check_words(const SourceFile& file);
// The fault of the demo arises from the allocator and the order alone: no function may ask for
// index key type and capture or streams together.
Offences check_fault_is_not_asked_for(const SourceFile& file);

}  // namespace redecode::tree
