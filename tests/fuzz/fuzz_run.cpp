// First byte: 0 the rest is a file, 1 it is a record after a good header, else it is the header
// record.
#include "tests/fuzz/wrap.h"
#include "traces/byte_source.h"
#include "traces/run_file.h"

namespace redecode {
namespace {

codec::Message good_header() {
  codec::Scratch scratch;
  return codec::build<schema::RunRecord>(
      scratch, [&](auto root) { codec::write(RunHeader(), root.initHeader()); });
}

void read(std::vector<uint8_t> bytes) {
  RunReader reader(in_memory(std::move(bytes), "fuzz"));
  RunRecord record;
  while (reader.next(record))
    if (record.finding) sentence(*record.finding);
}

}  // namespace
}  // namespace redecode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size < 9) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  try {
    if (data[0] == 0)
      read({rest.begin(), rest.end()});
    else
      read(fuzz::file_around(FileKind::run, data[0] == 1 ? good_header() : codec::Message(),
                             fuzz::as_message(rest)));
  } catch (const Error&) {
  }
  return 0;
}
