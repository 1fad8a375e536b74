// engine/litmus/lower.h - a litmus file as a Program with places: what checker and explorer take.
#pragma once
#include <string>
#include <vector>

#include "engine/litmus/litmus.h"
#include "engine/plan/hazards.h"
#include "traces/program.h"

namespace redecode {

// Bytes of a row, and of what a region holds beside its named rows: any number that can be divided.
inline constexpr uint64_t kLitmusRowBytes = 64;

struct LitmusProgram {
  Program program;                    // bake is resolved and leaves no command
  ExtentTable extents;                // buffers of one region share an address line
  std::vector<DecimalId> ids;         // [commands]
  std::vector<std::string> streams;   // by StreamId
  std::vector<std::string> events;    // by EventId
  std::vector<std::string> versions;  // by version - 1
};

// Streams are numbered in order of appearance, M first. A name that is freed and allocated again is
// a new buffer; *P stays with the one that was baked. Errors: corrupt, with the line, for a buffer
// or address that is not known where it is used; limit for more than litmus_limits::kStreams.
LitmusProgram lower(const Litmus& litmus);

}  // namespace redecode
