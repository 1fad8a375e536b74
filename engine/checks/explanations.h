// engine/checks/explanations.h - one page of text a check, as `redecode explain NAME` prints it.
#pragma once
#include <span>
#include <string_view>

namespace redecode {

struct Explanation {
  std::string_view name;
  std::string_view text;  // its first line says the check in a sentence
};

// Of pages/*.md, by name.
std::span<const Explanation> explanations();
const Explanation* find_explanation(std::string_view name);

}  // namespace redecode
