#include "traces/convert/export_json_lines.h"

#include "traces/convert/record_stream.h"
#include "traces/value_text.h"

namespace redecode {

ExportResult export_json_lines(const std::filesystem::path& path, ByteSink& out) {
  RecordStream stream(path);
  ExportResult result{.items = 0, .unit = "records", .end = FileEnd::clean, .notices = {}};
  JsonWriter json;
  const auto add = [&](std::string_view name, const auto& value) {
    if (!value) return;
    json.begin_object().key(name);
    write_json(*value, json);
    json.end_object();
    out.write(json.take() + '\n');
    ++result.items;
  };
  AnyRecord record;
  while (stream.next(record)) {
    add("step", record.step);
    add("output", record.output);
    add("event", record.event);
    add("gap", record.gap);
    add("exchange", record.exchange);
    add("finding", record.finding);
  }
  out.write("");  // an empty input still makes a file
  result.end = stream.summary().end;
  return result;
}

}  // namespace redecode
