// First byte: 0 the rest is a file, 1 it is a record after a good header, else it is the header
// record.
#include "tests/fuzz/wrap.h"
#include "traces/byte_source.h"
#include "traces/trace_file.h"
#include "traces/validate.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

codec::Message good_header() {
  codec::Scratch scratch;
  TraceHeader header;
  header.engine.page_size = 16;
  return codec::build<schema::TraceRecord>(
      scratch, [&](auto root) { codec::write(header, root.initHeader()); });
}

void read(std::vector<uint8_t> bytes) {
  TraceReader reader(in_memory(std::move(bytes), "fuzz"));
  StepValidator validator(reader.header().model, reader.header().engine, "fuzz");
  TraceRecord record;
  bool valid = true;
  while (reader.next(record)) {
    JsonWriter json;
    if (record.step) {
      write_json(*record.step, json);
      to_text(*record.step);
      try {
        if (valid) validator.add(*record.step);
      } catch (const Error&) {
        valid = false;
      }
    } else {
      write_json(*record.output, json);
      to_text(*record.output);
    }
    json.take();
  }
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
      read(fuzz::file_around(FileKind::trace, data[0] == 1 ? good_header() : codec::Message(),
                             fuzz::as_message(rest)));
  } catch (const Error&) {
  }
  return 0;
}
