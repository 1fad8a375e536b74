#include "traces/exchange.h"

#include <array>

namespace redecode {
namespace {

constexpr std::array<std::string_view, 4> kEnds = {"complete", "client_gone", "upstream_gone",
                                                   "not_sent"};

}  // namespace

std::string_view to_text(ExchangeEnd end) {
  const size_t at = static_cast<size_t>(end);
  return at < kEnds.size() ? kEnds[at] : "unknown";
}

bool from_text(std::string_view text, ExchangeEnd& out) {
  for (size_t i = 0; i < kEnds.size(); ++i) {
    if (kEnds[i] != text) continue;
    out = static_cast<ExchangeEnd>(i);
    return true;
  }
  return false;
}

}  // namespace redecode
