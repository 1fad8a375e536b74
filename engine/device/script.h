// engine/device/script.h - Script: an order written out, as the departures from fifo.
//
// A value that can be parsed, changed and printed: RecordingOrder writes one down, a shrinker takes
// picks away, make_order("script:" + to_text(script)) replays it. The grammar of the text stands in
// order.h.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/order.h"
#include "traces/step.h"

namespace redecode {

// One departure: (choice point of the step, pick > 0).
using ScriptPick = std::pair<uint32_t, uint32_t>;

struct Script {
  // Picks of a step by ascending choice point, never empty.
  std::map<StepIndex, std::vector<ScriptPick>> steps;
  bool operator==(const Script&) const = default;
};

// Parses "41/3.2-17.1;60/0.1", without the prefix "script:"; empty text is the empty script. Picks
// of 0 are accepted and dropped, for they say nothing; so is a step that has no other. Errors:
// limit when the text is longer than kMaxScriptBytes; usage, with the byte, when it breaks the
// grammar, when a number does not fit, or when steps or the choice points of a step do not ascend.
Script parse_script(std::string_view text);

// Parses the picks of one step, "3.2-17.1", as RecordingOrder::departures prints them. Errors as
// above.
std::vector<ScriptPick> parse_departures(std::string_view text);

// Inverse of parse_script and parse_departures. Steps without picks are left out.
std::string to_text(const Script& script);
std::string to_text(const std::vector<ScriptPick>& picks);

// "41/3.2-17.1" from the departures "3.2-17.1" of step 41; empty when they are empty. Entries
// joined by
// ';' are a script.
std::string script_entry(StepIndex step, std::string_view departures);

// The order that make_order gives for this script's text. choose throws Error usage when a pick is
// not below the number of candidates: the script was recorded for another program.
std::unique_ptr<Order> script_order(Script script);

}  // namespace redecode
