// engine/repair/fix_price.h - what a fix costs in time, against switching the overlap off.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "engine/price/device_spec.h"
#include "engine/repair/repair.h"

namespace redecode {

struct FixPrice {
  std::string device;
  double overlap_us = 0;  // the step as it is: fastest, and wrong
  double single_us = 0;   // all of it on one stream
  double fixed_us = 0;    // with the smallest set of edges
  double gain_kept = 1;   // by that set, as a share; overlap off keeps 0
  // Of putting the later op's stream onto the earlier one's, for the first race between two
  // streams.
  std::optional<double> serialised_us;
};

// Predicted by timed_run. Memory ways (record_stream, keep alive) cost no time: the step is then as
// fast as it was, and holds its blocks longer.
FixPrice price_fix(const Program& program, Submission submission, std::span<const Finding> races,
                   const Repair& repair, const DeviceSpec& device);

// The program with every op of `from` on `to`; with no `from`, all on stream 0.
Program on_stream(const Program& program, std::optional<StreamId> from, StreamId to);

}  // namespace redecode
