// traces/thousands.h - counts as people read them: 196608 is "196,608".
#pragma once
#include <cstdint>
#include <string>

namespace redecode {

inline std::string with_thousands(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace redecode
