// recorder/http/observe_escapes.h - JSON text without \u escapes, for capnp's JsonCodec: 0.9
// decodes the hex digits a to f as 0 to 5, and surrogate pairs half by half.
#pragma once
#include <string>
#include <string_view>

namespace redecode {

// The same JSON value with every "\uXXXX" written as the UTF-8 that it stands for; a surrogate
// without its other half becomes U+FFFD. Malformed escapes stay, for the parser to refuse. Outside
// of strings JSON has no backslashes, so that the text need not be parsed.
std::string without_unicode_escapes(std::string_view json);

}  // namespace redecode
