#include "traces/byte_source.h"
#include "traces/container.h"
#include "traces/finding.h"
#include "traces/inspect.h"
#include "traces/run_file.h"
#include "traces/thousands.h"
#include "traces/trace_set.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

void write_json(const FindingSide& side, JsonWriter& json) {
  json.begin_object();
  json.member("op", side.op).member("buffer", side.buffer).member("layer", side.layer);
  json.member("stream", side.stream).member("command", side.command).member("step", side.step);
  json.member("access", to_text(side.access)).member("generation", side.generation);
  json.end_object();
}

}  // namespace

void write_json(const Finding& finding, JsonWriter& json) {
  json.begin_object();
  json.member("kind", to_text(finding.kind)).member("check", check_of(finding));
  json.member("severity", to_text(finding.severity)).member("step", finding.step);
  json.key("request");
  if (finding.request == kNoRequest)
    json.null();
  else
    json.value(finding.request);
  json.member("layer", finding.layer);
  json.key("first");
  write_json(finding.first, json);
  json.key("second");
  write_json(finding.second, json);
  json.member("offset_bytes", finding.offset_bytes).member("size_bytes", finding.size_bytes);
  json.member("missing_edge", finding.missing_edge).member("advice", finding.advice);
  json.member("sentence", sentence(finding)).end_object();
}

namespace {

std::string to_text(const Finding& finding) {
  return std::string(redecode::to_text(finding.kind)) + " at " + sentence(finding);
}

// Collects what is in range, up to the limit.
class Dump {
 public:
  Dump(const DumpOptions& options, FileKind kind) : options_(options) {
    if (options_.json)
      json_.begin_object().member("kind", redecode::to_text(kind)).key("records").begin_array();
  }

  // False when enough has been seen.
  template <class Value>
  bool add(StepIndex step, std::string_view name, const Value& value) {
    if (step < options_.first || step > options_.last) return true;
    if (shown_ == options_.limit) {
      more_ = true;
      return false;
    }
    ++shown_;
    if (options_.json) {
      json_.begin_object().key(name);
      write(value);
      json_.end_object();
    } else {
      text_ += line(value) + '\n';
    }
    return true;
  }

  std::string finish() {
    if (options_.json) {
      json_.end_array().member("more", more_).end_object();
      return json_.take();
    }
    if (more_) text_ += "... more; shown are " + with_thousands(shown_) + " records\n";
    return std::move(text_);
  }

 private:
  void write(const Step& v) { redecode::write_json(v, json_); }
  void write(const StepOutput& v) { redecode::write_json(v, json_); }
  void write(const Finding& v) { redecode::write_json(v, json_); }
  void write(const Event& v) { redecode::write_json(v, json_); }
  void write(const Gap& v) { redecode::write_json(v, json_); }
  void write(const Exchange& v) { redecode::write_json(v, json_); }
  static std::string line(const Step& v) { return redecode::to_text(v); }
  static std::string line(const StepOutput& v) { return redecode::to_text(v); }
  static std::string line(const Finding& v) { return to_text(v); }
  static std::string line(const Event& v) { return redecode::to_text(v); }
  static std::string line(const Gap& v) { return "gap: " + redecode::to_text(v); }
  static std::string line(const Exchange& v) { return redecode::to_text(v); }

  DumpOptions options_;
  JsonWriter json_;
  std::string text_;
  uint64_t shown_ = 0;
  bool more_ = false;
};

void dump_trace(TraceReader reader, Dump& dump) {
  TraceRecord record;
  while (reader.next(record)) {
    bool go_on = true;
    if (record.step) go_on = dump.add(record.step->index, "step", *record.step);
    if (record.output) go_on = dump.add(record.output->step, "output", *record.output);
    if (record.event) go_on = dump.add(record.event->before_step, "event", *record.event);
    if (record.gap) go_on = dump.add(record.gap->first, "gap", *record.gap);
    if (record.exchange) go_on = dump.add(record.exchange->number, "exchange", *record.exchange);
    if (!go_on) return;
  }
}

void dump_run(RunReader reader, Dump& dump) {
  RunRecord record;
  while (reader.next(record)) {
    const bool go_on = record.output ? dump.add(record.output->step, "output", *record.output)
                                     : dump.add(record.finding->step, "finding", *record.finding);
    if (!go_on) return;
  }
}

}  // namespace

std::string dump_file(const std::filesystem::path& path, const DumpOptions& options) {
  if (options.first > options.last)
    throw Error(ErrorCode::usage, "steps " + std::to_string(options.first) + ".." +
                                      std::to_string(options.last) + " is an empty range");
  if (is_set(path)) {
    Dump dump(options, FileKind::trace);
    dump_trace(TraceReader(path), dump);
    return dump.finish();
  }
  std::unique_ptr<ByteSource> source = open_file(path);
  const FileKind kind = peek_file_kind(*source);
  Dump dump(options, kind);
  if (kind == FileKind::trace)
    dump_trace(TraceReader(std::move(source)), dump);
  else
    dump_run(RunReader(std::move(source)), dump);
  return dump.finish();
}

}  // namespace redecode
