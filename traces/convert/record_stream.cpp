#include "traces/convert/record_stream.h"

#include <memory>
#include <utility>

#include "traces/byte_source.h"
#include "traces/container.h"
#include "traces/error.h"
#include "traces/trace_set.h"

namespace redecode {

RecordStream::RecordStream(const std::filesystem::path& path) {
  if (is_set(path)) {
    trace_.emplace(path);
    return;
  }
  std::unique_ptr<ByteSource> source = open_file(path);
  if (peek_file_kind(*source) == FileKind::trace)
    trace_.emplace(std::move(source));
  else
    run_.emplace(std::move(source));
}

bool RecordStream::next(AnyRecord& out) {
  out.finding.reset();
  if (trace_) return trace_->next(out);
  RunRecord record;
  static_cast<TraceRecord&>(out) = TraceRecord();
  if (!run_->next(record)) return false;
  out.output = std::move(record.output);
  out.finding = std::move(record.finding);
  return true;
}

RecordStream trace_stream(const std::filesystem::path& path, const std::string& instead) {
  RecordStream stream(path);
  if (stream.kind() == FileKind::run)
    throw Error(ErrorCode::usage, "this is a run, not a trace: " + instead, path.string());
  return stream;
}

}  // namespace redecode
