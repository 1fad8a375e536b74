// cli/progress.h - Progress: how far a command is, on stderr: a bar on a terminal, else a line now
// and then.
//
// Silent with --quiet, and for work that takes less than a moment.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "cli/command.h"

namespace redecode {

class Progress {
 public:
  // "replay", "steps".
  Progress(const CommandContext& context, std::string label, std::string unit);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // total 0: not known; then there is a rate and neither percent nor time left. Cheap enough to be
  // called every step.
  void update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(uint64_t done, uint64_t total, double seconds) const;

  std::string label_, unit_;
  bool silent_, terminal_, shown_ = false;
  Clock::time_point start_, last_;
};

}  // namespace redecode
