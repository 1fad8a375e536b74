#include "traces/run_file.h"

#include <utility>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/schema_record.h"
#include "traces/value_digest.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using Root = schema::RunRecord;

}  // namespace

struct RunWriter::Impl {
  Impl(const std::filesystem::path& path, const RunHeader& header, const WriterOptions& options,
       bool overwrite)
      : header_message(codec::build<Root>(
            scratch, [&](Root::Builder root) { codec::write(header, root.initHeader()); })),
        container(path, FileKind::run, options, overwrite) {
    container.write_header(header_message);
    with_index = options.index;
    if (!options.schema) return;
    container.write_schema(codec::build<Root>(scratch, [](Root::Builder root) {
      codec::write_schema(capnp::Schema::from<Root>(), root.initSchema());
    }));
  }

  void append(const codec::Message& message, StepSpan steps) {
    REDECODE_CHECK(!closed);
    if (!container.fits(message)) container.flush();
    container.append(message, steps);
  }

  codec::Scratch scratch;
  codec::Message header_message;
  ContainerWriter container;
  codec::EndTotals totals;
  bool with_index = true;
  bool closed = false;
};

RunWriter::RunWriter(const std::filesystem::path& path, const RunHeader& header,
                     WriterOptions options, bool overwrite)
    : impl_(std::make_unique<Impl>(path, header, options, overwrite)) {}
RunWriter::~RunWriter() = default;
RunWriter::RunWriter(RunWriter&&) noexcept = default;

void RunWriter::write(const StepOutput& output) {
  impl_->append(
      codec::build<Root>(impl_->scratch,
                         [&](Root::Builder root) { codec::write(output, root.initOutput()); }),
      {output.step, 1});
  ++impl_->totals.outputs;
  impl_->totals.rows += output.rows.size();
  impl_->totals.digest = combine(impl_->totals.digest, digest_output(output));
}

void RunWriter::write(const Finding& finding) {
  impl_->append(
      codec::build<Root>(impl_->scratch,
                         [&](Root::Builder root) { codec::write(finding, root.initFinding()); }),
      {});
}

void RunWriter::flush() { impl_->container.flush(); }

void RunWriter::close() {
  REDECODE_CHECK(!impl_->closed);
  impl_->container.flush();
  impl_->totals.chunks = impl_->container.chunks();
  impl_->totals.records = impl_->container.records();
  codec::Message index;
  if (impl_->with_index)
    index = codec::build<Root>(impl_->scratch, [&](Root::Builder root) {
      codec::write(impl_->container.entries(), root.initIndex());
    });
  impl_->container.close(index, codec::build<Root>(impl_->scratch, [&](Root::Builder root) {
                           codec::write(impl_->totals, root.initEnd());
                         }));
  impl_->closed = true;
}

struct RunReader::Impl {
  explicit Impl(std::unique_ptr<ByteSource> source) : container(std::move(source), FileKind::run) {
    RecordView record;
    REDECODE_CHECK(container.next(record));
    codec::open<Root>(record.message, container.context(), [&](Root::Reader root) {
      if (!root.isHeader()) throw Error(ErrorCode::corrupt, "first record is not a header");
      codec::read(root.getHeader(), header);
    });
    update();
  }

  void update() {
    summary.file_bytes = container.file_bytes();
    summary.chunks = container.chunks();
    summary.records = container.records();
    summary.payload_bytes = container.payload_bytes();
    summary.end = container.end();
    summary.cut_offset_bytes = container.cut_offset_bytes();
    summary.trace_digest = header.trace_digest;
  }

  void read_output(schema::StepOutput::Reader in, RunRecord& out) {
    codec::read(in, out.output.emplace());
    ++summary.outputs;
    summary.rows += out.output->rows.size();
    summary.run_digest = combine(summary.run_digest, digest_output(*out.output));
  }

  void read_end(schema::End::Reader in, const RecordView& record) {
    if (!record.in_end_chunk) throw Error(ErrorCode::corrupt, "end record before the end chunk");
    codec::EndTotals stated;
    codec::read(in, stated);
    const codec::EndTotals seen = {container.chunks() - 1,
                                   container.records() - 1,
                                   0,
                                   summary.rows,
                                   summary.outputs,
                                   summary.run_digest,
                                   0,
                                   0,
                                   0,
                                   0};
    if (stated != seen) throw Error(ErrorCode::corrupt, "end record does not match what was read");
  }

  bool decode(const RecordView& record, RunRecord& out) {
    bool has_value = true;
    codec::open<Root>(record.message, container.context(), [&](Root::Reader root) {
      if (record.in_end_chunk && !root.isEnd())
        throw Error(ErrorCode::corrupt, "end chunk without an end record");
      switch (root.which()) {
        case Root::OUTPUT:
          return read_output(root.getOutput(), out);
        case Root::FINDING:
          codec::read(root.getFinding(), out.finding.emplace());
          ++summary.findings;
          return;
        case Root::END:
          has_value = false;
          return read_end(root.getEnd(), record);
        case Root::HEADER:
          throw Error(ErrorCode::corrupt, "a second header record");
        case Root::SCHEMA:
        case Root::INDEX:
          throw Error(ErrorCode::corrupt, "a schema or index outside its own chunk");
      }
      codec::unknown_enumerant("record kind", static_cast<unsigned>(root.which()));
    });
    return has_value;
  }

  ContainerReader container;
  RunHeader header;
  FileSummary summary;
};

RunReader::RunReader(const std::filesystem::path& path) : RunReader(open_file(path)) {}
RunReader::RunReader(std::unique_ptr<ByteSource> source)
    : impl_(std::make_unique<Impl>(std::move(source))) {}
RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;

const RunHeader& RunReader::header() const { return impl_->header; }
const FileSummary& RunReader::summary() const { return impl_->summary; }

bool RunReader::next(RunRecord& out) {
  out = RunRecord();
  RecordView record;
  while (impl_->container.next(record)) {
    const bool has_value = impl_->decode(record, out);
    impl_->update();
    if (has_value) return true;
  }
  impl_->update();
  return false;
}

}  // namespace redecode
