// The input is the segment of a program message. What decodes must print, and encode to a program
// that prints the same.
#include "tests/fuzz/wrap.h"
#include "traces/check.h"
#include "traces/program_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  const codec::Message message = fuzz::as_message({data, size});
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(message.data()),
                                       message.size() * 8);
  try {
    const Program program = decode_program(bytes, "fuzz");
    const std::string text = dump(program);
    REDECODE_CHECK(dump(decode_program(encode_program(program), "again")) == text);
  } catch (const Error&) {
  }
  return 0;
}
