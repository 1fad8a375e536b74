#include "recorder/abi/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>

#include "recorder/abi/trigger_signal.h"
#include "recorder/ring/breadcrumb.h"
#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr uint32_t kMaxLanes = 256;

uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

int64_t wall_clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

RecorderOptions checked(RecorderOptions options) {
  if (options.path.empty()) throw Error(ErrorCode::usage, "a recorder needs a path");
  if (options.flush_ms == 0) options.flush_ms = 1000;
  if (options.header.started_unix_us == 0) options.header.started_unix_us = wall_clock_us();
  if (options.header.sampling.empty() && options.sampling != "all")
    options.header.sampling = options.sampling;
  if (options.ring_dir.empty()) {
    const bool shared = ::access("/dev/shm", W_OK | X_OK) == 0;
    options.ring_dir = shared ? "/dev/shm" : options.path.parent_path();
    if (options.ring_dir.empty()) options.ring_dir = ".";
  }
  return options;
}

std::string digits(uint64_t value) { return std::to_string(value); }

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : options_(checked(options)),
      started_ns_(monotonic_ns()),
      target_(TraceSetWriter(options_.path, options_.header, options_.writer, options_.rotate,
                             options_.overwrite),
              Sampler(options_.sampling)),
      assembler_(target_, started_ns_) {
  shared_.policy = options_.policy;
  shared_.block_timeout_us = options_.block_timeout_us;
  int signal = 0;
  read_triggers(options_.trigger, shared_, signal);
  if (signal != 0) watch_signal(signal, shared_.triggered);
  if (options_.policy == Policy::keep_last) assembler_.set_jump_cause(kGapOverwritten);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::environment, std::string("no thread for the recorder: ") + error.what());
  }
}

Recorder::~Recorder() { close(); }

std::filesystem::path Recorder::ring_path(uint32_t lane) const {
  const std::string name = "redecode-" + digits(static_cast<uint64_t>(::getpid())) + "-" +
                           digits(started_ns_) + "-" + digits(lane) + ".ring";
  return std::filesystem::absolute(options_.ring_dir / name);
}

void Recorder::write_breadcrumb() const {
  std::ofstream out(breadcrumb_path(options_.path), std::ios::trunc);
  for (const auto& producer : producers_) out << producer->lane->ring().path().string() << '\n';
  out.flush();
  if (!out)
    throw Error(ErrorCode::environment, "cannot write", breadcrumb_path(options_.path).string());
}

Lane& Recorder::open_lane() {
  const std::lock_guard lock(mutex_);
  REDECODE_CHECK(!closed_);
  for (const auto& producer : producers_) {
    if (producer->in_use) continue;
    producer->in_use = true;
    return *producer->lane;
  }
  if (producers_.size() == kMaxLanes)
    throw Error(ErrorCode::environment, "a recorder has at most " + digits(kMaxLanes) + " lanes");
  auto producer = std::make_unique<Producer>();
  const RingSetup setup{.ring_bytes = options_.ring_bytes,
                        .lane = static_cast<uint32_t>(producers_.size()),
                        .started_unix_us = options_.header.started_unix_us,
                        .started_ns = started_ns_,
                        .keep_last = options_.policy == Policy::keep_last};
  producer->lane =
      std::make_unique<Lane>(std::make_unique<SharedRing>(ring_path(setup.lane), setup), shared_);
  producers_.push_back(std::move(producer));
  write_breadcrumb();
  return *producers_.back()->lane;
}

void Recorder::close_lane(Lane& lane) {
  const std::lock_guard lock(mutex_);
  for (const auto& producer : producers_)
    if (producer->lane.get() == &lane) producer->in_use = false;
}

uint32_t Recorder::request_id(std::string_view engine_id) {
  const std::lock_guard lock(ids_mutex_);
  const auto found = ids_.find(engine_id);
  if (found != ids_.end()) {
    if (!shared_.departed.has(found->second)) return found->second;
    ids_.erase(found);
  }
  // Ids that nobody asks for again go in sweeps, so that the table follows what runs.
  if (ids_.size() >= sweep_at_) {
    std::erase_if(ids_, [&](const auto& id) { return shared_.departed.has(id.second); });
    sweep_at_ = 2 * ids_.size() + kLeastSweep;
  }
  shared_.departed.cover(next_id_);
  ids_.emplace(engine_id, next_id_);
  return next_id_++;
}

void Recorder::trigger() { shared_.triggered.store(true, std::memory_order_relaxed); }

void Recorder::run() {
  constexpr uint64_t kLongestSleepUs = 2000;
  uint64_t sleep_us = 50;
  last_flush_ms_ = last_sync_ms_ = monotonic_ns() / 1'000'000;
  for (;;) {
    bool closing = false;
    {
      const std::lock_guard lock(mutex_);
      closing = closing_;
    }
    const bool busy = pass();
    serve_flush_request();
    if (closing && !busy) return;
    sleep_us = busy ? 50 : std::min(sleep_us * 2, kLongestSleepUs);
    if (!busy) std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
  }
}

// Empties what the rings hold now; true when there was something.
bool Recorder::pass() {
  if (shared_.failed.load(std::memory_order_relaxed)) return false;
  bool busy = false;
  try {
    const std::lock_guard lock(mutex_);
    if (options_.policy == Policy::keep_last && !closing_) {
      if (shared_.triggered.exchange(false)) drain_triggered();
      return false;
    }
    // The lane of the steps is read last, but only as far as it was at the start: what other lanes
    // said before those steps is then known.
    const void* const steps = shared_.step_lane.load(std::memory_order_acquire);
    uint64_t steps_until = 0;
    Producer* step_lane = nullptr;
    for (const auto& producer : producers_)
      if (producer->lane.get() == steps) {
        step_lane = producer.get();
        steps_until = producer->lane->ring().head();
      }
    for (const auto& producer : producers_)
      if (producer.get() != step_lane) busy |= drain(*producer, producer->lane->ring().head());
    if (step_lane != nullptr) busy |= drain(*step_lane, steps_until);
    flush_when_due(monotonic_ns() / 1'000'000);
  } catch (const Error& error) {
    fail(error.what());
  } catch (const std::exception& error) {
    fail(std::string("the recorder failed: ") + error.what());
  }
  return busy;
}

bool Recorder::drain(Producer& producer, uint64_t until) {
  const SharedRing& ring = producer.lane->ring();
  if (producer.position >= until) return false;
  std::span<const uint8_t> bytes =
      ring.readable(producer.position).first(static_cast<size_t>(until - producer.position));
  bool moved = false;
  RawRecord record;
  while (take_record(bytes, record)) {
    const RecordKind kind = record.head.kind;
    const bool of_steps = producer.lane.get() == shared_.step_lane.load(std::memory_order_relaxed);
    const Taken taken = assembler_.take(record);
    if (taken == Taken::held && !of_steps && !closing_) return moved;
    REDECODE_CHECK(taken != Taken::unsound || kind == RecordKind::step);
    pin_books(producer);
    producer.position += record.head.size_bytes;
    moved = true;
    if (kind == RecordKind::step || kind == RecordKind::outputs) after_step();
  }
  return moved;
}

// Books and losses that wait for their step are in no chunk yet: the ring keeps them until then.
void Recorder::pin_books(Producer& producer) {
  if (assembler_.has_pending()) {
    producer.books_position = std::min(producer.books_position, producer.position);
    has_pins_ = true;
  } else if (has_pins_) {
    for (const auto& each : producers_) each->books_position = UINT64_MAX;
    has_pins_ = false;
  }
}

// What a closed chunk holds is safe: its room in the rings is given back.
void Recorder::after_step() {
  if (target_.writer().open_bytes() == 0) give_back();
}

void Recorder::give_back() {
  for (const auto& producer : producers_) {
    const uint64_t safe = std::min(producer->position, producer->books_position);
    if (safe > producer->lane->ring().tail()) producer->lane->ring().give_back(safe);
  }
  last_flush_ms_ = monotonic_ns() / 1'000'000;
  count_files();
}

void Recorder::flush_chunk(bool sync) {
  const uint64_t begin_ns = monotonic_ns();
  if (sync)
    target_.writer().sync();
  else
    target_.writer().flush();
  counts_.chunk_write_us_last = (monotonic_ns() - begin_ns) / 1000;
  counts_.chunk_write_us_max = std::max(counts_.chunk_write_us_max, counts_.chunk_write_us_last);
  give_back();
}

void Recorder::flush_when_due(uint64_t now_ms) {
  bool tight = false;
  for (const auto& producer : producers_) {
    const SharedRing& ring = producer->lane->ring();
    const uint64_t used = ring.head() - ring.tail();
    counts_.ring_used_bytes = used;
    counts_.ring_peak_bytes = std::max(counts_.ring_peak_bytes, used);
    tight |= used > ring.size_bytes() / 2 && producer->position > ring.tail();
  }
  const bool open = target_.writer().open_bytes() != 0;
  if (open && (tight || now_ms - last_flush_ms_ >= options_.flush_ms)) flush_chunk(false);
  if (options_.sync_ms != 0 && now_ms - last_sync_ms_ >= options_.sync_ms) {
    last_sync_ms_ = now_ms;
    flush_chunk(true);
  }
}

void Recorder::drain_triggered() {
  ++counts_.triggers;
  for (const auto& producer : producers_) {
    SharedRing& ring = producer->lane->ring();
    while (!ring.take_tail()) std::this_thread::yield();
    if (assembler_.gaps() == 0 && target_.steps() == 0) assembler_.expect(0);
    producer->position = std::max(producer->position, ring.tail());
    drain(*producer, ring.head());
    flush_chunk(false);
    ring.return_tail();
  }
}

void Recorder::fail(const std::string& text) {
  const std::lock_guard lock(mutex_);
  error_ = text;
  counts_.failed = 1;
  shared_.failed.store(true, std::memory_order_release);
}

void Recorder::serve_flush_request() {
  std::unique_lock lock(mutex_);
  if (flush_asked_ == flush_done_) return;
  if (!shared_.failed.load()) {
    try {
      flush_chunk(flush_sync_);
    } catch (const Error& error) {
      lock.unlock();
      fail(error.what());
      lock.lock();
    }
  }
  flush_done_ = flush_asked_;
  flushed_.notify_all();
}

bool Recorder::flush(uint32_t timeout_ms, bool sync) {
  std::unique_lock lock(mutex_);
  // Two rounds: the first may have looked at the rings before this call.
  for (int round = 0; round < 2; ++round) {
    flush_sync_ = sync;
    const uint64_t mine = ++flush_asked_;
    if (!flushed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [&] { return flush_done_ >= mine; }))
      return false;
  }
  return !shared_.failed.load();
}

void Recorder::count_files() {
  counts_.file_bytes = target_.writer().bytes_written();
  counts_.files = target_.writer().files();
  ++counts_.chunks;
}

rr_stats Recorder::stats() const {
  const std::lock_guard lock(mutex_);
  rr_stats out = counts_;
  out.size = sizeof out;
  out.lanes = static_cast<uint32_t>(producers_.size());
  out.first_dropped_step = UINT64_MAX;
  for (const auto& producer : producers_) {
    const RingHeader& h = producer->lane->ring().header();
    out.steps_seen += h.steps_seen.load();
    out.steps_dropped += h.steps_dropped.load();
    out.records_dropped += h.records_dropped.load();
    out.bytes_dropped += h.bytes_dropped.load();
    out.first_dropped_step = std::min(out.first_dropped_step, h.first_dropped.load());
    out.ring_bytes = producer->lane->ring().size_bytes();
  }
  out.steps_written = target_.steps();
  out.steps_skipped = target_.steps_skipped();
  out.outputs_written = target_.outputs();
  out.events_written = target_.events();
  out.gaps = target_.gaps();
  return out;
}

std::string Recorder::error_text() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool Recorder::close() {
  if (closed_) return !shared_.failed.load();
  for (const auto& producer : producers_) producer->lane->finish();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  thread_.join();
  forget_signals(shared_.triggered);
  closed_ = true;
  if (!shared_.failed.load()) {
    try {
      flush_chunk(false);  // makes room for what the lanes have to say
      for (const auto& producer : producers_) {
        producer->lane->finish();
        drain(*producer, producer->lane->ring().head());
      }
      assembler_.finish();
      target_.finish();
      target_.writer().close();
      give_back();
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  const bool whole = !shared_.failed.load();
  if (whole) {
    std::error_code ignored;
    for (const auto& producer : producers_)
      std::filesystem::remove(producer->lane->ring().path(), ignored);
    std::filesystem::remove(breadcrumb_path(options_.path), ignored);
  }
  return whole;
}

}  // namespace redecode
