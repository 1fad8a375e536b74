// traces/program_codec.h - a Program as bytes (one Cap'n Proto message,
// traces/schema/program.capnp).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/program.h"

namespace redecode {

// Equal programs give equal bytes. Errors: limit (traces/limits.h). CHECK: names and persistents
// are set.
std::vector<uint8_t> encode_program(const Program& program);

// The program with name and buffer tables of its own. Every index and byte range in it has been
// checked. Errors: corrupt, limit, version; `name` is for messages.
Program decode_program(std::span<const uint8_t> bytes, const std::string& name);

// Whether every index lies inside its table and every region inside its buffer; else why not, in
// words. Empty: fine. Cost: linear.
std::string why_ill_formed(const Program& program);

}  // namespace redecode
