// engine/litmus/verdict.h - what the checker says of a litmus file, against what the file expects.
#pragma once
#include <string>
#include <vector>

#include "engine/litmus/lower.h"
#include "traces/finding.h"

namespace redecode {

struct LitmusReport {
  std::string path, name, scope;
  std::vector<Finding> findings;       // sides name ops; `command` is the index of lower()
  std::vector<std::string> sentences;  // [findings], with the ids and streams of the file
  std::vector<LitmusExpect> found;     // of `findings` that conflict, sorted, each once
  std::vector<LitmusExpect> expected;  // RACE, PROV, UNINIT, UAF and LIVE lines, sorted
  bool has_expectation = false;        // the file has expect lines
  bool only_values_show = false;       // it expects NUM: nothing to find in the structure
  bool has_fix = false;
  std::vector<std::string> fixed_sentences;  // of what is left after the fix
  std::vector<LitmusExpect> fixed_found;

  bool matches() const { return found == expected && fixed_found.empty(); }
};

// All races, not only the latest; see HazardChecker. Errors: as lower and with_fixes.
std::vector<Finding> check_litmus(const LitmusProgram& litmus);
std::vector<LitmusExpect> verdicts_of(const std::vector<Finding>& findings,
                                      const LitmusProgram& litmus);
// "`next_layer_tmp` (10, S) writes `t2` ... `consume` (7, M) ...; no edge orders them. ..."
std::string litmus_sentence(const Finding& finding, const LitmusProgram& litmus);
LitmusReport report_litmus(const Litmus& litmus, const std::string& path);

}  // namespace redecode
