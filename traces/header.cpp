#include "traces/header.h"

#include <array>

namespace redecode {
namespace {

constexpr std::array<std::string_view, 4> kRedactions = {"none", "lengths", "hashes", "encrypted"};

}  // namespace

std::string_view to_text(Redaction redaction) {
  const size_t at = static_cast<size_t>(redaction);
  return at < kRedactions.size() ? kRedactions[at] : "unknown";
}

bool from_text(std::string_view text, Redaction& out) {
  for (size_t i = 0; i < kRedactions.size(); ++i) {
    if (kRedactions[i] != text) continue;
    out = static_cast<Redaction>(i);
    return true;
  }
  return false;
}

}  // namespace redecode
