// engine/plan/anchor.h - OpAnchor: an op of a step by its name, so that small edits do not move it.
//
// Text: NAME@LAYER#ORDINAL, where the ordinal counts the ops of equal name and layer from 0 in
// program order; @0 and #0 are left out. "qkv_a@4", "moe.zero@2#1", "gemm".
//
// Order strings of kind before: are made of them: before:STEP/A<B,C<D;STEP/... - in that step A
// runs before B and C before D, against program order; everything else is fifo. STEP may be *: the
// pairs then hold in every step that has both ops and leaves them free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/program.h"
#include "traces/step.h"

namespace redecode {

struct OpAnchor {
  std::string name;
  uint32_t layer = 0;
  uint32_t ordinal = 0;
  bool operator==(const OpAnchor&) const = default;
};

std::string to_text(const OpAnchor& anchor);
// The anchor of a launch, copy, fill or host command. Cost: O(commands).
OpAnchor anchor_of(const Program& program, uint32_t command);
// Its command; nothing when the program has no such op. Cost: O(commands).
std::optional<uint32_t> find_op(const Program& program, const OpAnchor& anchor);

struct Precedence {
  OpAnchor first, then;
  bool operator==(const Precedence&) const = default;
};

struct PrecedenceScript {
  std::vector<Precedence> every_step;
  std::map<StepIndex, std::vector<Precedence>> steps;
  bool operator==(const PrecedenceScript&) const = default;
};

// "196/qkv_a@4<indexer.logits@3", without "before:". Errors: usage with the byte; limit for more
// than kMaxScriptBytes.
inline constexpr size_t kMaxPrecedenceBytes = size_t{1} << 20;
PrecedenceScript parse_precedences(std::string_view text);
std::string to_text(const PrecedenceScript& script);

}  // namespace redecode
