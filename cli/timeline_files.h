// cli/timeline_files.h - `--timeline FILE` and `--svg FILE`: a checked program as pictures.
#pragma once
#include <span>
#include <string>

#include "engine/plan/hazards.h"
#include "engine/price/device_spec.h"
#include "traces/finding.h"

namespace redecode {

struct PictureOptions {
  std::string timeline, svg;  // empty: not wanted
  std::string device = "h200";
  bool force = false;
  bool any() const { return !timeline.empty() || !svg.empty(); }
};

// Writes what is wanted; the SVG shows the first finding of `step`. Returns lines that say so.
// Errors: usage (a file exists, or there is no finding to show), environment.
std::string write_pictures(const PictureOptions& options, const Program& program,
                           Submission submission, StepIndex step,
                           std::span<const Finding> findings);

}  // namespace redecode
