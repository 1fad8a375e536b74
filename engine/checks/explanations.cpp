#include "engine/checks/explanations.h"

#include <algorithm>

namespace redecode {

const Explanation* find_explanation(std::string_view name) {
  const auto all = explanations();
  const auto at = std::ranges::find(all, name, &Explanation::name);
  return at == all.end() ? nullptr : &*at;
}

}  // namespace redecode
