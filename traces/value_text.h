// traces/value_text.h - steps and outputs as one readable line, or as JSON.
#pragma once
#include <string>
#include <string_view>

#include "traces/event.h"
#include "traces/exchange.h"
#include "traces/finding.h"
#include "traces/json_writer.h"
#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

std::string_view to_text(Phase phase);
std::string_view to_text(DepartureReason reason);

// "step 12 decode bucket 8 rows 5 | -r3 finished | +r7 session 2 round 1 prompt 120 cached 64 |
// r7[3]=page 9 | r7@120=511 r8@0..63": position and token of a row, a range for a prompt chunk, "*"
// after rows without output.
std::string to_text(const Step& step);
// "output 12 | r7@120 -> 345 (1.25) | 3 probes | order 3.2": sampled token and its log probability
// where the token is among the top logits.
std::string to_text(const StepOutput& output);

// "event before step 12: registered r7 'cmpl-1'".
std::string to_text(const Event& event);
// "exchange 4: POST /v1/completions 200, 120 prompt tokens, 31 output tokens, 0.412 s".
std::string to_text(const Exchange& exchange);

void write_json(const Event& event, JsonWriter& json);
void write_json(const Gap& gap, JsonWriter& json);
void write_json(const Exchange& exchange, JsonWriter& json);
void write_json(const Step& step, JsonWriter& json);
void write_json(const StepOutput& output, JsonWriter& json);
void write_json(const Finding& finding, JsonWriter& json);

}  // namespace redecode
