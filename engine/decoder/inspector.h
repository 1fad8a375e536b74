// engine/decoder/inspector.h - Inspector: runs every structural check on each step of a decoder.
//
// Hazards, page ownership, values frozen into graphs, reductions whose shape follows the batch.
// Needs no device and reads no values. Findings of one kind about the same two ops are kept once,
// at their first step, and counted.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/checks/certificate.h"
#include "engine/decoder/page_tables.h"
#include "engine/memory/bindings.h"
#include "engine/plan/hazards.h"
#include "traces/finding.h"

namespace redecode {

class Inspector {
 public:
  explicit Inspector(const std::vector<PersistentBuffer>& persistents);

  // How `program`, of a batch of one row, cuts its reductions: every step must cut them so. Without
  // this, the first step that has a reduction sets the rule.
  void expect_reductions(const Program& program);

  // The inputs upload, then the step's program; then the host waits for all.
  // `captured` is the program in the graph, or null in eager mode.
  void add_step(StepIndex step, const Program& inputs, const Program& program,
                const Program* captured, const Bindings& bindings, const PageTables& tables);

  // Findings of a check that is not run here.
  void add(std::vector<Finding> findings) { keep(findings); }

  // What has been added so far, as one digest; see certificate.h.
  const Certificate& certificate() const { return certifier_.certificate(); }

  // One a kind and pair of ops, in order of first appearance.
  const std::vector<Finding>& findings() const { return findings_; }
  // How often findings()[i] was seen.
  uint64_t count(size_t i) const { return counts_[i]; }
  uint64_t total() const { return total_; }

 private:
  using Key = std::tuple<FindingKind, std::string, uint32_t, std::string, uint32_t>;
  void keep(std::vector<Finding>& fresh);
  void check_reductions(StepIndex step, const Program& program, std::vector<Finding>& out);

  HazardChecker hazards_;
  Certifier certifier_;
  ExtentTable extents_;
  std::map<std::pair<NameId, uint16_t>, int64_t> reductions_;
  std::vector<Finding> findings_;
  std::vector<uint64_t> counts_;
  std::map<Key, size_t> by_key_;
  uint64_t total_ = 0;
};

// Places of transients, free of addresses: segment ordinal and offset on one line.
void place_transients(const Program& program, const Bindings& bindings, ExtentTable& extents);
// Persistent buffers side by side, behind all segments.
void place_persistents(const std::vector<PersistentBuffer>& persistents, ExtentTable& extents);

}  // namespace redecode
