// cli/output.h - what commands print: one text for people or one JSON object, and findings in both.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "traces/finding.h"
#include "traces/json_writer.h"

namespace redecode {

// Prints `text`, or with --json `json` and a newline, and nothing else. When the reader of stdout
// has gone the rest is dropped without a word, so that the exit code still says what was found.
// Errors: environment (disk full).
void emit(const CommandContext& context, std::string_view text, std::string_view json);

// One line, however many `message` has: line ends become "; ", other control characters "?".
std::string one_line(std::string_view message);

// One sentence a finding with how often it was seen; empty without findings.
std::string findings_text(std::span<const Finding> findings, std::span<const uint64_t> counts);

// Appends the member "findings": an array with an object a finding.
void findings_json(std::span<const Finding> findings, std::span<const uint64_t> counts,
                   JsonWriter& json);

// "label         value\n", labels in one column.
std::string labelled(std::string_view label, const std::string& value);

// "123.4" from 123.4321: one digit after the point, "0.0" for what is not finite.
std::string tenths(double value);

}  // namespace redecode
