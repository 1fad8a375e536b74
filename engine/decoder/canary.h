// engine/decoder/canary.h - PageCanary: which KV pages a step changed, against which it may.
//
// Looks at bytes, not at declared ranges: what a wild pointer or a wrong page table does shows
// here even where the structure looks right. Works on any device; reads every page of every paged
// buffer before and after a step, so it is for hunting, not for production.
#pragma once
#include <vector>

#include "engine/decoder/page_tables.h"
#include "engine/device/device.h"
#include "engine/memory/bindings.h"
#include "traces/digest.h"
#include "traces/finding.h"

namespace redecode {

class PageCanary {
 public:
  // Both must outlive the canary.
  PageCanary(const std::vector<PersistentBuffer>& buffers, const std::vector<Binding>& places);

  // Takes the pages as they are. The device must be synced.
  void arm(const Device& device);

  // After the step: a finding for each paged buffer of which pages changed that the step may not
  // write. `clean` is the step's program with exact ranges as it should be: its rows' writes, and
  // page 0 for padding, are what may change. `ran`, the program as it ran, names the writer where
  // its ranges tell.
  void check(StepIndex step, const Device& device, const Program& clean, const Program& ran,
             const PageTables& tables, std::vector<Finding>& out) const;

 private:
  struct Paged {
    uint32_t buffer = 0;  // index of the persistent buffer
    std::vector<Digest> pages;
  };
  std::vector<Digest> digests(const Device& device, const Paged& paged) const;

  const std::vector<PersistentBuffer>& buffers_;
  const std::vector<Binding>& places_;
  std::vector<Paged> paged_;
};

}  // namespace redecode
