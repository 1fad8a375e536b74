// engine/explore/tiles.h - an op as two tiles: what another op between them makes of it.
//
// Kernels run as thread blocks, and those of another kernel may run between them: a reader then
// sees half of a write. An op is split into halves of each of its ranges, the second on a stream of
// its own that forks before and joins behind the op, so that nothing but the op itself is loosened.
#pragma once
#include <optional>

#include "engine/explore/content_model.h"
#include "engine/plan/hazards.h"
#include "traces/program.h"

namespace redecode {

struct TiledProgram {
  Program program;
  uint32_t first_tile = 0, second_tile = 0;  // commands
  uint32_t other = 0;                        // where the command asked for is now
};

// Splits `command`; `other` is another command to keep track of. Nothing when it is a host command,
// a prologue, or when the program has no stream left.
std::optional<TiledProgram> tiled(const Program& program, uint32_t command, uint32_t other);

// What goes wrong when `other` runs between the tiles of `command`; no fault when nothing does, and
// nothing when no such order exists. Cost: that of building a graph and a model of the program.
std::optional<ContentFault> torn_run(const Program& program, const ExtentTable& extents,
                                     Submission submission, uint32_t command, uint32_t other);

}  // namespace redecode
