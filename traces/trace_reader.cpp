#include <deque>
#include <utility>

#include "traces/check.h"
#include "traces/container.h"
#include "traces/little_endian.h"
#include "traces/step_block.h"
#include "traces/trace_file.h"
#include "traces/trace_set_reader.h"
#include "traces/value_digest.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using Root = schema::TraceRecord;

TraceHeader header_of(ContainerReader& container) {
  TraceHeader header;
  RecordView record;
  REDECODE_CHECK(container.next(record));
  codec::open<Root>(record.message, container.context(), [&](Root::Reader root) {
    if (!root.isHeader()) throw Error(ErrorCode::corrupt, "first record is not a header");
    codec::read(root.getHeader(), header);
  });
  return header;
}

}  // namespace

struct TraceReader::Impl {
  Impl(SetSource files, ReadOptions read_options) : set(std::move(files)), options(read_options) {
    open(set.take_first());
    id = file_id();
    header = file_header;
    rows = RowCodec(header.engine.page_size);
    state = ScheduleState(header.engine.page_size);
    update();
  }

  void open(std::unique_ptr<ByteSource> source) {
    container = std::make_unique<ContainerReader>(std::move(source), FileKind::trace, options);
    file_header = header_of(*container);
    file = codec::EndTotals();
    file_steps_damaged = 0;
    is_partial = false;
  }

  // The set that the file in hand belongs to: its first file is named by its own id.
  std::string set_id() const {
    return file_header.place.set.empty() ? file_id() : file_header.place.set;
  }
  std::string file_id() const {
    const uint8_t* uuid = container->uuid().data();
    return digest_hex(load_le<uint64_t>(uuid)) + digest_hex(load_le<uint64_t>(uuid + 8));
  }
  void check_set(const std::string& expected) const {
    if (set_id() != expected)
      throw Error(ErrorCode::corrupt, "file belongs to another trace set: move it elsewhere",
                  container->source().name());
  }

  // The next file of a set; false when there is none.
  bool open_next() {
    bool missing = false;
    std::unique_ptr<ByteSource> source = set.take_next(options.salvage, missing);
    if (!source) return false;
    done_bytes += container->file_bytes();
    done_chunks += container->chunks();
    done_records += container->records();
    done_payload_bytes += container->payload_bytes();
    const Digest last = container->last_chunk();
    const bool was_cut = container->end() == FileEnd::cut || container->has_skipped();
    const std::string last_set = set_id();
    open(std::move(source));
    check_set(last_set);
    const bool follows = file_header.place.previous == last;
    if (!missing && !follows && !was_cut && !options.salvage)
      throw Error(ErrorCode::corrupt, "file does not follow the one before it in its set",
                  container->source().name());
    if (missing || !follows) pending_causes |= missing ? kGapFileMissing : kGapDamaged;
    resumes = true;
    return true;
  }

  void update() {
    summary.file_bytes = done_bytes + container->file_bytes();
    summary.chunks = done_chunks + container->chunks();
    summary.records = done_records + container->records();
    summary.payload_bytes = done_payload_bytes + container->payload_bytes();
    summary.end = container->end();
    summary.cut_offset_bytes = container->cut_offset_bytes();
  }

  void count(const Step& step) {
    ++summary.steps;
    ++file.steps;
    summary.rows += step.rows.size();
    file.rows += step.rows.size();
    const Digest digest = digest_step(step);
    summary.trace_digest = combine(summary.trace_digest, digest);
    file.digest = combine(file.digest, digest);
  }

  void count(const Gap& gap) {
    ++summary.gaps;
    summary.steps_lost += gap.count;
  }

  void read_end(schema::End::Reader in, const RecordView& record, TraceRecord& out) {
    if (!record.in_end_chunk) throw Error(ErrorCode::corrupt, "end record before the end chunk");
    codec::EndTotals stated;
    codec::read(in, stated);
    file.chunks = container->chunks() - 1;
    file.records = container->records() - 1;
    if (!container->has_skipped() && stated != file)
      throw Error(ErrorCode::corrupt, "end record does not match what was read");
    give_lost_tail(stated, out);
  }

  // Steps that were damaged behind the last one that was read: the end record counts them.
  void give_lost_tail(const codec::EndTotals& stated, TraceRecord& out) {
    const uint64_t accounted = file.steps + file.steps_lost + file_steps_damaged;
    const uint64_t total = stated.steps + stated.steps_lost;
    if (knows_next && !is_partial && total > accounted)
      give_lost(next_step + (total - accounted), out);
  }

  // A gap up to `continues_at`, where steps are missing that nothing accounts for.
  void give_lost(StepIndex continues_at, TraceRecord& out) {
    if (!knows_next || pending_causes == 0 || continues_at <= next_step) return;
    out.gap = Gap{.first = next_step,
                  .last = continues_at - 1,
                  .count = continues_at - next_step,
                  .bytes = std::exchange(pending_bytes, 0),
                  .causes = std::exchange(pending_causes, 0)};
    count(*out.gap);
    file_steps_damaged += out.gap->count;
    next_step = continues_at;
    state.apply_gap(out.gap->last);
  }

  void read_keyframe(schema::Keyframe::Reader in, const RecordView& record, TraceRecord& out) {
    if (!record.starts_chunk) throw Error(ErrorCode::corrupt, "keyframe inside a chunk");
    Keyframe keyframe;
    codec::read(in, keyframe);
    give_lost(keyframe.next_step, out);
    rows.reset(keyframe);
    if (!has_start) start = keyframe;
    if (!has_start || resumes) state.restore(keyframe);
    has_start = true;
    resumes = false;
  }

  // Puts `step` into `out`, behind a gap where steps are missing that no keyframe told of.
  void give(Step step, TraceRecord& out) {
    give_lost(step.index, out);
    if (out.gap)
      queued.push_back(std::move(step));
    else
      out.step = std::move(step);
    pending_causes = 0;
    pending_bytes = 0;
  }

  void give_step(Step step, TraceRecord& out) {
    give(std::move(step), out);
    if (out.step) seen(*out.step);
  }

  void seen(const Step& step) {
    next_step = step.index + 1;
    knows_next = true;
    state.apply(step);
    count(step);
  }

  void give_gap(Gap gap, TraceRecord& out) {
    ++file.gaps;
    file.steps_lost += gap.count;
    count(gap);
    next_step = gap.last + 1;
    knows_next = true;
    rows.skip(gap.last);
    state.apply_gap(gap.last);
    out.gap = gap;
  }

  // False for records that are none of the caller's.
  bool decode(const RecordView& record, TraceRecord& out) {
    if (record.starts_chunk) rows.reset();
    bool has_value = true;
    codec::open<Root>(record.message, container->context(), [&](Root::Reader root) {
      if (record.in_end_chunk && !root.isEnd())
        throw Error(ErrorCode::corrupt, "end chunk without an end record");
      switch (root.which()) {
        case Root::STEP: {
          Step step;
          codec::read(root.getStep(), rows, step);
          return give_step(std::move(step), out);
        }
        case Root::BLOCK:
          block.open(root.getBlock());
          has_value = next_of_block(out);
          return;
        case Root::OUTPUT:
          codec::read(root.getOutput(), out.output.emplace());
          ++summary.outputs;
          ++file.outputs;
          return;
        case Root::EVENT:
          codec::read(root.getEvent(), out.event.emplace());
          ++summary.events;
          ++file.events;
          return;
        case Root::EXCHANGE:
          codec::read(root.getExchange(), out.exchange.emplace());
          ++summary.exchanges;
          ++file.exchanges;
          return;
        case Root::GAP: {
          Gap gap;
          codec::read(root.getGap(), gap);
          return give_gap(gap, out);
        }
        case Root::KEYFRAME:
          read_keyframe(root.getKeyframe(), record, out);
          has_value = out.gap.has_value();
          return;
        case Root::END:
          read_end(root.getEnd(), record, out);
          has_value = out.gap.has_value();
          return;
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

  bool next_of_block(TraceRecord& out) {
    Step step;
    if (!block.next(step)) return false;
    give_step(std::move(step), out);
    return true;
  }

  // Nothing was read yet that says where the steps began: the index does, or chunk headers.
  void learn_next(uint64_t chunk) {
    std::vector<ChunkEntry> entries = index_entries();
    if (entries.empty()) entries = scan_chunks(container->source());
    uint64_t due = chunk;
    for (const ChunkEntry& e : entries) {
      if (e.number < chunk) continue;
      if (e.number != due++) break;
      if (e.steps.count == 0) continue;
      next_step = e.steps.first;
      knows_next = true;
      return;
    }
    is_partial = true;
  }

  void note(const Damage& damage) {
    summary.damaged_chunks += damage.last_chunk - damage.first_chunk + 1;
    pending_causes |= kGapDamaged;
    pending_bytes += damage.size_bytes;
    if (!knows_next) learn_next(damage.first_chunk);
    resumes = true;
    notes.push_back(container->source().name() + ": byte " + std::to_string(damage.offset_bytes) +
                    ": " + damage.reason);
  }

  bool next(TraceRecord& out) {
    if (!queued.empty()) {
      out.step = std::move(queued.front());
      queued.pop_front();
      seen(*out.step);
      return true;
    }
    if (next_of_block(out)) return true;
    RecordView record;
    for (;;) {
      while (container->next(record)) {
        if (record.damage) {
          note(*record.damage);
          continue;
        }
        try {
          const bool has_value = decode(record, out);
          update();
          if (has_value) return true;
        } catch (const Error& error) {
          // Checksums were right and the record is not: what a chunk holds beyond it is not used.
          if (!options.salvage || error.code() == ErrorCode::environment) throw;
          ++summary.damaged_chunks;
          pending_causes |= kGapDamaged;
          notes.push_back(error.what());
          out = TraceRecord();
          queued.clear();
          container->skip_chunk();
        }
      }
      update();
      if (!set.has_next() || !open_next()) return false;
    }
  }

  bool seek(StepIndex step) {
    if (set.is_set()) {
      set.restart();
      open(set.take_first());
    }
    for (;;) {
      if (seek_here(step)) return true;
      if (!set.has_next() || !open_next()) return false;
    }
  }

  bool seek_here(StepIndex step) {
    if (!container->seek(step, index_entries()) &&
        !container->seek(step, scan_chunks(container->source())))
      return false;
    queued.clear();
    block.close();
    knows_next = false;
    is_partial = true;
    resumes = true;
    has_start = false;
    return true;
  }

  std::vector<ChunkEntry> index_entries() {
    std::vector<ChunkEntry> entries;
    try {
      const std::vector<uint64_t> record = read_index_record(container->source());
      if (record.empty()) return entries;
      codec::open<Root>(record, container->source().name(), [&](Root::Reader root) {
        if (root.isIndex()) codec::read(root.getIndex(), entries);
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::environment) throw;
      entries.clear();
    }
    return entries;
  }

  SetSource set;
  ReadOptions options;
  std::unique_ptr<ContainerReader> container;
  RowCodec rows{0};
  codec::BlockDecoder block{rows};
  TraceHeader header, file_header;
  std::string id;
  FileSummary summary;
  codec::EndTotals file;            // of the file in hand
  uint64_t file_steps_damaged = 0;  // of it, that our own gaps count
  bool is_partial = false;          // not all of it was asked for, or its start is lost
  std::deque<Step> queued;
  std::vector<std::string> notes;
  ScheduleState state{0};  // after what was given
  Keyframe start;
  bool has_start = false;
  bool resumes = false;  // the next keyframe is where the state goes on from
  StepIndex next_step = 0;
  bool knows_next = false;
  uint32_t pending_causes = 0;
  uint64_t pending_bytes = 0;
  uint64_t done_bytes = 0, done_chunks = 0, done_records = 0, done_payload_bytes = 0;
};

TraceReader::TraceReader(const std::filesystem::path& path, ReadOptions options)
    : impl_(std::make_unique<Impl>(SetSource(path), options)) {}
TraceReader::TraceReader(std::unique_ptr<ByteSource> source, ReadOptions options)
    : impl_(std::make_unique<Impl>(SetSource(std::move(source)), options)) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;

const TraceHeader& TraceReader::header() const { return impl_->header; }
const FileSummary& TraceReader::summary() const { return impl_->summary; }
const ScheduleState& TraceReader::state() const { return impl_->state; }
const Keyframe& TraceReader::start() const { return impl_->start; }
const std::vector<std::string>& TraceReader::damage() const { return impl_->notes; }
std::string TraceReader::id() const { return impl_->id; }
std::string TraceReader::context() const { return impl_->container->context(); }
bool TraceReader::seek(StepIndex step) { return impl_->seek(step); }

bool TraceReader::next(TraceRecord& out) {
  out = TraceRecord();
  return impl_->next(out);
}

}  // namespace redecode
