// recorder/http/observe_json.h - the fields of OpenAI requests and answers that an Exchange keeps,
// read from their JSON.
//
// Lenient: what is missing or of another type keeps its default, for servers extend this API
// freely. Only text that is not a JSON object is refused. Nothing else of a body is kept.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "recorder/http/observe.h"
#include "traces/exchange.h"

namespace redecode {

// Fills the request's side of `out`: model, prompt, sampling, stop, n, max_tokens, streamed.
// False when `body` is not a JSON object; `out` is then unchanged. Cost: one parse.
bool read_request(std::string_view body, bool chat, Exchange& out);

// Adds a whole answer, or one event of a streamed one, to `out`: texts and finish reasons of the
// choices by their index, token counts of "usage". False when `json` is not a JSON object, or it
// names a choice at or above limits.choices, or the texts pass limits.answer_bytes.
bool read_answer(std::string_view json, const ObserverLimits& limits, Exchange& out);

// The first entry's id of a model list (GET /v1/models); empty when there is none.
std::string read_model_id(std::string_view json);

}  // namespace redecode
