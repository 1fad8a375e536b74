// cli/price_text.h - predicted times in words and as JSON.
#pragma once
#include <string>

#include "engine/repair/fix_price.h"
#include "traces/json_writer.h"

namespace redecode {

std::string price_text(const FixPrice& price, bool has_races);
void price_json(const FixPrice& price, JsonWriter& json);  // the member "price"

}  // namespace redecode
