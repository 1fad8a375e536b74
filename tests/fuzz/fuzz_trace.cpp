// First byte, its low bits: 0 the rest is a file, 1 it is a record after a good header, else it is
// the header record; bit 2: read it salvaging.
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

template <class Value>
void show(const Value& value) {
  JsonWriter json;
  write_json(value, json);
  json.take();
  to_text(value);
}

void read(std::vector<uint8_t> bytes, bool salvage) {
  TraceReader reader(in_memory(std::move(bytes), "fuzz"), {.salvage = salvage});
  StepValidator validator(reader.header().model, reader.header().engine, "fuzz");
  TraceRecord record;
  bool valid = true, started = false;
  while (reader.next(record)) {
    if (record.output) show(*record.output);
    if (record.event) show(*record.event);
    if (record.gap) show(*record.gap);
    if (record.exchange) show(*record.exchange);
    if (record.step) show(*record.step);
    try {
      if (valid && record.step && !started) validator.start(reader.start());
      started |= record.step.has_value();
      if (valid && record.gap) validator.skip(*record.gap);
      if (valid && record.step) validator.add(*record.step);
    } catch (const Error&) {
      valid = false;
    }
  }
  reader.seek(7);
}

}  // namespace
}  // namespace redecode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redecode;
  if (size < 9) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  try {
    const bool salvage = (data[0] & 4) != 0;
    const int what = data[0] & 3;
    if (what == 0)
      read({rest.begin(), rest.end()}, salvage);
    else
      read(fuzz::file_around(FileKind::trace, what == 1 ? good_header() : codec::Message(),
                             fuzz::as_message(rest)),
           salvage);
  } catch (const Error&) {
  }
  return 0;
}
