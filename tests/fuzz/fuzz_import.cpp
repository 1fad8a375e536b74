// First byte: even a Mooncake trace, odd an Azure trace.
#include <cstddef>
#include <cstdint>

#include "traces/error.h"
#include "traces/import_azure.h"
#include "traces/import_mooncake.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0)
      parse_mooncake(text, "fuzz");
    else
      parse_azure(text, "fuzz");
  } catch (const Error&) {
  }
  return 0;
}
