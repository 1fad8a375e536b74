// traces/samples.h - public data that the program carries with it, so that it needs no files.
//
// Sources and licences: traces/data/ATTRIBUTION.md.
#pragma once
#include <string_view>

namespace redecode {

// The first 300 rows of Mooncake's conversation trace, for parse_mooncake. Apache-2.0.
std::string_view mooncake_sample();
// The first 500 rows of the Azure LLM inference trace 2023 (conversation), for parse_azure.
// CC-BY 4.0.
std::string_view azure_sample();

// Text of the first tool-calling dialogues of tau-bench (airline, gpt-4o), a line a message. MIT.
std::string_view dialogue_sample();

}  // namespace redecode
