// engine/checks/certificate.h - Certificate: what a check without findings proves, and of what.
//
// Equal programs at equal places give equal digests on every machine, so CI can require one.
#pragma once
#include <cstdint>
#include <string>

#include "engine/plan/hazards.h"
#include "traces/digest.h"

namespace redecode {

struct Certificate {
  uint64_t programs = 0;  // steps, captures included
  uint64_t commands = 0, accesses = 0;
  Digest digest = 0;  // of every command, access and place, in order
};

class Certifier {
 public:
  // In the order in which they were checked. Cost: O(commands + accesses).
  void add(const Program& program, const ExtentTable& extents, Submission submission);
  const Certificate& certificate() const { return out_; }

 private:
  Certificate out_;
};

// "every conflicting pair of 1,204 accesses is ordered, every read ..., every address is owned".
std::string claim_of(const Certificate& certificate);

}  // namespace redecode
