#include <utility>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/schema_record.h"
#include "traces/step_block.h"
#include "traces/trace_file.h"
#include "traces/value_digest.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using Root = schema::TraceRecord;

constexpr uint64_t kMostKeyframePages = uint64_t{1} << 20;  // 4 MiB of a chunk's 16

}  // namespace

struct TraceWriter::Impl {
  Impl(const std::filesystem::path& path, const TraceHeader& header, const WriterOptions& given,
       bool overwrite)
      : options(given),
        rows(header.engine.page_size),
        block(rows),
        header_message(build([&](Root::Builder root) { codec::write(header, root.initHeader()); })),
        container(path, FileKind::trace, container_options(options), overwrite) {
    container.write_header(header_message);
    if (!options.schema) return;
    container.write_schema(build([](Root::Builder root) {
      codec::write_schema(capnp::Schema::from<Root>(), root.initSchema());
    }));
  }

  // Chunks are closed here, by what follows their keyframe: page tables may be large themselves.
  static WriterOptions container_options(WriterOptions options) {
    options.chunk_bytes = limits::kChunkBytes;
    return options;
  }

  template <class Fill>
  codec::Message build(Fill&& fill) {
    return codec::build<Root>(scratch, fill);
  }

  // The keyframe that opens a chunk; expectations start from it on both sides.
  void open_chunk() {
    if (chunk_is_open) return;
    Keyframe keyframe = rows.state().keyframe();
    uint64_t entries = 0;
    for (const RunningRequest& r : keyframe.running) entries += r.pages.size();
    if (entries > kMostKeyframePages)  // their slots are then written out, once a chunk
      for (RunningRequest& r : keyframe.running) r.pages.clear();
    rows.reset(keyframe);
    container.append(
        build([&](Root::Builder root) { codec::write(keyframe, root.initKeyframe()); }));
    chunk_is_open = true;
    keyframe_bytes = container.payload_bytes();
  }

  void append(const codec::Message& message, StepSpan steps = {}) {
    container.append(message, steps);
    if (!container.starts_chunk() && block.empty() && aside.empty() &&
        open_bytes() >= options.chunk_bytes)
      container.flush();
    if (container.starts_chunk()) chunk_is_open = false;
  }

  // A record of its own, in order. One that does not fit the open chunk goes into the next.
  void append_aside(codec::Message message) {
    REDECODE_CHECK(!closed);
    container.throw_if_failed();
    if (options.layout == StepLayout::columns && !block.empty()) {
      aside_bytes += message.size() * 8;
      aside.push_back(std::move(message));
      if (open_bytes() >= options.chunk_bytes) flush();
      return;
    }
    open_chunk();
    if (!container.fits(message)) {
      flush();
      open_chunk();
    }
    append(message);
  }

  void write_row_step(const Step& step) {
    if (rows_are_ahead) flush();
    open_chunk();
    rows_are_ahead = true;
    const auto encode = [&] {
      return build([&](Root::Builder root) { codec::write(step, rows, root.initStep()); });
    };
    if (container.payload_bytes() + step_bytes(step) > limits::kChunkBytes) {
      const ScheduleCopy before(rows.state());
      codec::Message message = encode();
      if (!container.fits(message)) {
        rows.reset(before.keyframe);
        flush();
        open_chunk();
        rows_are_ahead = true;
        message = encode();
      }
      append(message, {step.index, 1});
    } else {
      append(encode(), {step.index, 1});
    }
    rows_are_ahead = false;
  }

  struct ScheduleCopy {
    explicit ScheduleCopy(const ScheduleState& state) : keyframe(state.keyframe()) {}
    Keyframe keyframe;
  };

  // No encoding of a step is larger.
  static uint64_t step_bytes(const Step& step) {
    return 1024 + step.rows.size() * 20 + step.arrivals.size() * 64 + step.departures.size() * 16 +
           step.page_changes.size() * 24;
  }

  void write_block_step(const Step& step) {
    container.throw_if_failed();
    if (!block.follows(step) || !block.fits(step) ||
        open_bytes() + step_bytes(step) > limits::kChunkBytes / 2)
      flush();
    open_chunk();
    block.add(step);
    if (block.steps() >= options.chunk_steps || open_bytes() >= options.chunk_bytes) flush();
  }

  // Writes the block and what waits behind it into the open chunk.
  void write_block() {
    if (block.empty()) return;
    const codec::Message message =
        build([&](Root::Builder root) { block.write(root.initBlock()); });
    const StepSpan steps{block.first(), block.steps()};
    block.clear();
    append(message, steps);
    std::vector<codec::Message> waiting = std::exchange(aside, {});
    aside_bytes = 0;
    for (codec::Message& record : waiting) append_aside(std::move(record));
  }

  void flush() {
    write_block();
    container.flush();
    chunk_is_open = false;
    rows_are_ahead = false;
  }

  uint64_t open_bytes() const {
    const uint64_t written = chunk_is_open ? container.payload_bytes() - keyframe_bytes : 0;
    return written + block.size_bytes() + aside_bytes;
  }

  WriterOptions options;
  codec::Scratch scratch;
  RowCodec rows;
  codec::BlockEncoder block;
  std::vector<codec::Message> aside;  // behind the open block
  uint64_t aside_bytes = 0;
  codec::Message header_message;
  ContainerWriter container;
  codec::EndTotals totals;
  ValueDigest digester;
  bool chunk_is_open = false;
  uint64_t keyframe_bytes = 0;  // of the open chunk
  bool closed = false;
  bool wrote = false;
  // `rows` has seen a step that was refused after that, so the open chunk can take no more.
  bool rows_are_ahead = false;
};

TraceWriter::TraceWriter(const std::filesystem::path& path, const TraceHeader& header,
                         WriterOptions options, bool overwrite)
    : impl_(std::make_unique<Impl>(path, header, options, overwrite)) {}
TraceWriter::~TraceWriter() {
  if (!impl_ || impl_->closed) return;
  try {
    impl_->flush();
  } catch (const Error&) {
    // A destructor has nobody to tell; the file ends with its last whole chunk.
  }
}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;

void TraceWriter::write(const Step& step) {
  REDECODE_CHECK(!impl_->closed);
  impl_->wrote = true;
  if (impl_->options.layout == StepLayout::columns)
    impl_->write_block_step(step);
  else
    impl_->write_row_step(step);
  ++impl_->totals.steps;
  impl_->totals.rows += step.rows.size();
  impl_->totals.digest = combine(impl_->totals.digest, digest_step(step, impl_->digester));
}

void TraceWriter::write(const StepOutput& output) {
  impl_->append_aside(
      impl_->build([&](Root::Builder root) { codec::write(output, root.initOutput()); }));
  ++impl_->totals.outputs;
}

void TraceWriter::write(const Event& event) {
  impl_->append_aside(
      impl_->build([&](Root::Builder root) { codec::write(event, root.initEvent()); }));
  ++impl_->totals.events;
}

void TraceWriter::write(const Exchange& exchange) {
  impl_->append_aside(
      impl_->build([&](Root::Builder root) { codec::write(exchange, root.initExchange()); }));
  ++impl_->totals.exchanges;
}

void TraceWriter::write(const Gap& gap) {
  REDECODE_CHECK(gap.first <= gap.last);
  impl_->write_block();
  impl_->append_aside(impl_->build([&](Root::Builder root) { codec::write(gap, root.initGap()); }));
  impl_->rows.skip(gap.last);
  ++impl_->totals.gaps;
  impl_->totals.steps_lost += gap.count;
}

void TraceWriter::flush() { impl_->flush(); }

void TraceWriter::sync() {
  impl_->flush();
  impl_->container.sync();
}

void TraceWriter::close() {
  Impl& w = *impl_;
  REDECODE_CHECK(!w.closed);
  w.flush();
  w.totals.chunks = w.container.chunks();
  w.totals.records = w.container.records();
  codec::Message index;
  if (w.options.index)
    index =
        w.build([&](Root::Builder root) { codec::write(w.container.entries(), root.initIndex()); });
  w.container.close(index,
                    w.build([&](Root::Builder root) { codec::write(w.totals, root.initEnd()); }));
  w.closed = true;
}

void TraceWriter::restore(const Keyframe& keyframe) {
  REDECODE_CHECK(!impl_->wrote && !impl_->chunk_is_open);
  impl_->rows.reset(keyframe);
}

Keyframe TraceWriter::keyframe() const { return impl_->rows.state().keyframe(); }
Digest TraceWriter::trace_digest() const { return impl_->totals.digest; }
uint64_t TraceWriter::bytes_written() const { return impl_->container.bytes_written(); }
uint64_t TraceWriter::open_bytes() const { return impl_->open_bytes(); }
Digest TraceWriter::last_chunk() const { return impl_->container.last_chunk(); }
std::string TraceWriter::id() const {
  const auto* words = impl_->header_message.data();
  const size_t bytes = impl_->header_message.size() * 8;
  return digest_hex(digest_bytes(words, bytes, 1)) + digest_hex(digest_bytes(words, bytes, 2));
}

}  // namespace redecode
