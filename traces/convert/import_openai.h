// traces/convert/import_openai.h - one line of an OpenAI request log as a request.
//
// The line is a JSON object: a body as for /v1/completions ("prompt") or /v1/chat/completions
// ("messages"), or an object around it with a "body", as logs and batch inputs have it:
//   {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {...}}
//   {"timestamp": "2024-05-01T12:00:00Z", "path": "/v1/completions", "body": {...}}
// Times: "timestamp", "time" or "created", of the object around or of the body, as a number or as
// text (unix_time.h). Token counts: the length of a prompt that is a list of token ids, or "usage"
// (prompt_tokens, completion_tokens) beside the body or in it. Other members are ignored.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/exchange.h"

namespace redecode {

struct ImportedRequest {
  Exchange exchange;               // number, start_us and session are for the importer to set
  std::optional<int64_t> time_us;  // as the line says it; since 1970 or since the log began
};

// Errors: corrupt (what is wrong, naming the member), limit.
ImportedRequest parse_openai_line(std::string_view line);

}  // namespace redecode
