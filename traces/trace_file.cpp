#include "traces/trace_file.h"

#include <utility>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/value_digest.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using Root = schema::TraceRecord;

}  // namespace

struct TraceWriter::Impl {
  Impl(const std::filesystem::path& path, const TraceHeader& header, const WriterOptions& options,
       bool overwrite)
      : rows(header.engine.page_size),
        header_message(codec::build<Root>(
            scratch, [&](Root::Builder root) { codec::write(header, root.initHeader()); })),
        container(path, FileKind::trace, options, overwrite) {
    container.write_header(header_message);
  }

  // Encodes and appends; a record that does not fit the open chunk is encoded anew for the next
  // one.
  template <class Encode>
  void append(std::optional<StepIndex> step, Encode&& encode) {
    REDECODE_CHECK(!closed);
    if (rows_are_ahead) {
      container.flush();
      rows_are_ahead = false;
    }
    if (container.starts_chunk()) rows.reset();
    rows_are_ahead = true;
    codec::Message message = encode();
    if (!container.fits(message)) {
      container.flush();
      rows.reset();
      message = encode();
    }
    container.append(message, step);
    rows_are_ahead = false;
  }

  codec::Scratch scratch;
  RowCodec rows;
  codec::Message header_message;
  ContainerWriter container;
  codec::EndTotals totals;
  bool closed = false;
  // `rows` has seen a step that was refused after that, so the open chunk can take no more.
  bool rows_are_ahead = false;
};

TraceWriter::TraceWriter(const std::filesystem::path& path, const TraceHeader& header,
                         WriterOptions options, bool overwrite)
    : impl_(std::make_unique<Impl>(path, header, options, overwrite)) {}
TraceWriter::~TraceWriter() = default;
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;

void TraceWriter::write(const Step& step) {
  impl_->append(step.index, [&] {
    return codec::build<Root>(impl_->scratch, [&](Root::Builder root) {
      codec::write(step, impl_->rows, root.initStep());
    });
  });
  ++impl_->totals.steps;
  impl_->totals.rows += step.rows.size();
  impl_->totals.digest = combine(impl_->totals.digest, digest_step(step));
}

void TraceWriter::write(const StepOutput& output) {
  impl_->append(std::nullopt, [&] {
    return codec::build<Root>(impl_->scratch,
                              [&](Root::Builder root) { codec::write(output, root.initOutput()); });
  });
  ++impl_->totals.outputs;
}

void TraceWriter::flush() { impl_->container.flush(); }

void TraceWriter::close() {
  REDECODE_CHECK(!impl_->closed);
  impl_->container.flush();
  impl_->totals.chunks = impl_->container.chunks();
  impl_->totals.records = impl_->container.records();
  impl_->container.close(codec::build<Root>(
      impl_->scratch, [&](Root::Builder root) { codec::write(impl_->totals, root.initEnd()); }));
  impl_->closed = true;
}

Digest TraceWriter::trace_digest() const { return impl_->totals.digest; }
uint64_t TraceWriter::bytes_written() const { return impl_->container.bytes_written(); }

struct TraceReader::Impl {
  explicit Impl(std::unique_ptr<ByteSource> source)
      : container(std::move(source), FileKind::trace) {
    RecordView record;
    REDECODE_CHECK(container.next(record));
    codec::open<Root>(record.message, container.context(), [&](Root::Reader root) {
      if (!root.isHeader()) throw Error(ErrorCode::corrupt, "first record is not a header");
      codec::read(root.getHeader(), header);
    });
    rows = RowCodec(header.engine.page_size);
    update();
  }

  void update() {
    summary.file_bytes = container.file_bytes();
    summary.chunks = container.chunks();
    summary.records = container.records();
    summary.payload_bytes = container.payload_bytes();
    summary.end = container.end();
    summary.cut_offset_bytes = container.cut_offset_bytes();
  }

  void read_step(schema::Step::Reader in, TraceRecord& out) {
    codec::read(in, rows, out.step.emplace());
    ++summary.steps;
    summary.rows += out.step->rows.size();
    summary.trace_digest = combine(summary.trace_digest, digest_step(*out.step));
  }

  void read_end(schema::End::Reader in, const RecordView& record) {
    if (!record.in_end_chunk) throw Error(ErrorCode::corrupt, "end record before the end chunk");
    codec::EndTotals stated;
    codec::read(in, stated);
    const codec::EndTotals seen = {container.chunks() - 1, container.records() - 1,
                                   summary.steps,          summary.rows,
                                   summary.outputs,        summary.trace_digest};
    if (stated != seen) throw Error(ErrorCode::corrupt, "end record does not match what was read");
  }

  // False for the end record, which is none of the caller's.
  bool decode(const RecordView& record, TraceRecord& out) {
    if (record.starts_chunk) rows.reset();
    bool has_value = true;
    codec::open<Root>(record.message, container.context(), [&](Root::Reader root) {
      if (record.in_end_chunk && !root.isEnd())
        throw Error(ErrorCode::corrupt, "end chunk without an end record");
      switch (root.which()) {
        case Root::STEP:
          return read_step(root.getStep(), out);
        case Root::OUTPUT:
          codec::read(root.getOutput(), out.output.emplace());
          ++summary.outputs;
          return;
        case Root::END:
          has_value = false;
          return read_end(root.getEnd(), record);
        case Root::HEADER:
          throw Error(ErrorCode::corrupt, "a second header record");
      }
      codec::unknown_enumerant("record kind", static_cast<unsigned>(root.which()));
    });
    return has_value;
  }

  ContainerReader container;
  RowCodec rows{0};
  TraceHeader header;
  FileSummary summary;
};

TraceReader::TraceReader(const std::filesystem::path& path) : TraceReader(open_file(path)) {}
TraceReader::TraceReader(std::unique_ptr<ByteSource> source)
    : impl_(std::make_unique<Impl>(std::move(source))) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;

const TraceHeader& TraceReader::header() const { return impl_->header; }
const FileSummary& TraceReader::summary() const { return impl_->summary; }
std::string TraceReader::context() const { return impl_->container.context(); }

bool TraceReader::next(TraceRecord& out) {
  out = TraceRecord();
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
