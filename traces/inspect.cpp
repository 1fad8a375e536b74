#include "traces/inspect.h"

#include "traces/byte_source.h"
#include "traces/container.h"
#include "traces/finding.h"
#include "traces/run_file.h"
#include "traces/trace_set.h"
#include "traces/validate.h"

namespace redecode {
namespace {

void see_step(StepIndex step, FileInfo& info) {
  if (!info.first_step) info.first_step = step;
  info.last_step = step;
}

void count(const Step& step, FileInfo& info) {
  see_step(step.index, info);
  ++info.steps_by_phase[static_cast<size_t>(step.phase)];
  info.departures += step.departures.size();
  for (const Arrival& a : step.arrivals) info.requests += a.resumed ? 0 : 1;
}

// Fills `info` as far as it gets, so that a fault leaves what came before it.
void read_trace(TraceReader reader, bool validate, FileInfo& info) {
  info.trace_header = reader.header();
  info.summary = reader.summary();
  StepValidator validator(reader.header().model, reader.header().engine, info.path);
  TraceRecord record;
  for (bool more = true; more;) {
    more = reader.next(record);
    info.summary = reader.summary();
    if (!more) continue;
    if (record.gap) info.gaps.push_back(*record.gap);
    if (validate && record.gap) validator.skip(*record.gap);
    if (!record.step) continue;
    if (validate && !info.first_step) validator.start(reader.start());
    count(*record.step, info);
    if (validate) validator.add(*record.step);
  }
}

void read_run(std::unique_ptr<ByteSource> source, bool validate, FileInfo& info) {
  RunReader reader(std::move(source));
  info.run_header = reader.header();
  info.summary = reader.summary();
  RunRecord record;
  for (bool more = true; more;) {
    more = reader.next(record);
    info.summary = reader.summary();
    if (!more) continue;
    if (record.finding) ++info.findings_by_kind[static_cast<size_t>(record.finding->kind)];
    if (!record.output) continue;
    if (validate && info.last_step && record.output->step <= *info.last_step)
      throw Error(ErrorCode::corrupt,
                  "output of step " + std::to_string(record.output->step) + " follows step " +
                      std::to_string(*info.last_step),
                  info.path);
    see_step(record.output->step, info);
  }
}

void read_file(const std::filesystem::path& path, bool validate, FileInfo& info) {
  info.path = path.string();
  if (is_set(path)) return read_trace(TraceReader(path), validate, info);
  std::unique_ptr<ByteSource> source = open_file(path);
  info.summary.file_bytes = source->size_bytes();
  info.kind = peek_file_kind(*source);
  if (info.kind == FileKind::trace)
    read_trace(TraceReader(std::move(source)), validate, info);
  else
    read_run(std::move(source), validate, info);
}

bool is_fault_of_file(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::truncated || code == ErrorCode::limit ||
         code == ErrorCode::version;
}

}  // namespace

FileInfo inspect_file(const std::filesystem::path& path) {
  FileInfo info;
  read_file(path, false, info);
  return info;
}

VerifyResult verify_file(const std::filesystem::path& path) {
  VerifyResult result;
  try {
    read_file(path, true, result.info);
    result.sound = true;
  } catch (const Error& e) {
    if (!is_fault_of_file(e.code())) throw;
    result.code = e.code();
    result.fault = e.message();
    result.where = e.context();
  }
  return result;
}

double bytes_per_step(const FileInfo& info) {
  const uint64_t steps = info.kind == FileKind::trace ? info.summary.steps : info.summary.outputs;
  return steps == 0 ? 0.0
                    : static_cast<double>(info.summary.file_bytes) / static_cast<double>(steps);
}

}  // namespace redecode
