#include "recorder/abi/redecode_record.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "recorder/abi/recorder.h"
#include "traces/error.h"
#include "traces/limits.h"

#ifndef REDECODE_VERSION
#define REDECODE_VERSION "0.1.0"
#endif

// The C names are thin: they check arguments, catch everything, and call Recorder and Lane.

struct rr_recorder {
  explicit rr_recorder(const redecode::RecorderOptions& options) : recorder(options) {}
  redecode::Recorder recorder;
  mutable std::string error;
};

namespace redecode {
namespace {

rr_lane* to_c(Lane& lane) { return reinterpret_cast<rr_lane*>(&lane); }
Lane& from_c(rr_lane* lane) { return *reinterpret_cast<Lane*>(lane); }

void say(char* message, size_t size, const char* text) {
  if (message == nullptr || size == 0) return;
  const size_t count = std::min(size - 1, std::strlen(text));
  std::memcpy(message, text, count);
  message[count] = '\0';
}

// The caller's struct, which an older header may have made shorter, over today's defaults.
template <class T>
T filled(const T* given, const T& defaults) {
  T out = defaults;
  std::memcpy(&out, given, std::min<size_t>(given->size, sizeof out));
  out.size = sizeof out;
  return out;
}

// False for structs that no *_init made.
template <class T>
bool is_struct(const T* given) {
  return given != nullptr && given->size >= 8 && given->size <= 4 * sizeof(T);
}

template <class T>
void init(T* out, size_t size, const T& defaults) {
  if (out == nullptr) return;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &defaults, std::min(size, sizeof defaults));
  out->size = static_cast<uint32_t>(size);
}

rr_options default_options() {
  rr_options o{};
  o.size = sizeof o;
  o.abi_version = RR_ABI_VERSION;
  o.layout = RR_LAYOUT_COLUMNS;
  o.zstd_level = 0;
  return o;
}

rr_arrival default_arrival() {
  rr_arrival a{};
  a.size = sizeof a;
  a.request = RR_NO_REQUEST;
  a.top_p = 1.0f;
  return a;
}

rr_step_info default_step() {
  rr_step_info s{};
  s.size = sizeof s;
  s.phase = RR_PHASE_DECODE;
  s.index = RR_NEXT_STEP;
  return s;
}

rr_output_info default_outputs() {
  rr_output_info o{};
  o.size = sizeof o;
  o.step = RR_LAST_STEP;
  return o;
}

std::string text(const char* value) { return value == nullptr ? std::string() : value; }

Policy policy_of(int32_t value) {
  if (value == RR_DROP) return Policy::drop;
  if (value == RR_BLOCK) return Policy::block;
  if (value == RR_KEEP_LAST) return Policy::keep_last;
  throw Error(ErrorCode::usage, "there is no policy " + std::to_string(value));
}

TraceHeader header_of(const rr_options& o) {
  TraceHeader h;
  h.writer = o.writer == nullptr ? std::string("libredecode_record ") + rr_version() : o.writer;
  h.model.family = o.model_family == nullptr ? "external" : o.model_family;
  h.model.spec = text(o.model_spec);
  h.model.vocab = o.vocab;
  h.model.layers = o.layers;
  h.model.weights_sha256 = text(o.weights_sha256);
  h.model.tokenizer_sha256 = text(o.tokenizer_sha256);
  h.model.config_sha256 = text(o.config_sha256);
  h.engine.page_size = o.page_size;
  h.engine.page_count = o.page_count;
  h.engine.max_batch_rows = o.max_batch_rows;
  h.engine.max_seq_len = o.max_seq_len;
  if (o.bucket_count > limits::kBuckets || (o.bucket_count != 0 && o.buckets == nullptr))
    throw Error(ErrorCode::usage, "buckets have no meaning");
  if (o.bucket_count != 0) h.engine.buckets.assign(o.buckets, o.buckets + o.bucket_count);
  h.workload = text(o.workload);
  if (o.environment_count > limits::kListedTexts ||
      (o.environment_count != 0 && o.environment == nullptr))
    throw Error(ErrorCode::usage, "environment has no meaning");
  for (uint32_t i = 0; i < o.environment_count; ++i)
    h.environment.push_back(text(o.environment[i]));
  std::sort(h.environment.begin(), h.environment.end());
  h.environment.erase(std::unique(h.environment.begin(), h.environment.end()), h.environment.end());
  return h;
}

RecorderOptions options_of(const rr_options& o) {
  if (o.abi_version != RR_ABI_VERSION)
    throw Error(ErrorCode::version, "this library has ABI version " +
                                        std::to_string(RR_ABI_VERSION) + ", the caller wants " +
                                        std::to_string(o.abi_version));
  RecorderOptions out;
  out.path = text(o.path);
  out.ring_dir = text(o.ring_dir);
  if (o.ring_bytes != 0) out.ring_bytes = o.ring_bytes;
  out.policy = policy_of(o.policy);
  out.block_timeout_us = o.block_timeout_us;
  out.overwrite = o.overwrite != 0;
  if (o.layout != RR_LAYOUT_ROWS && o.layout != RR_LAYOUT_COLUMNS)
    throw Error(ErrorCode::usage, "there is no layout " + std::to_string(o.layout));
  out.writer.layout = o.layout == RR_LAYOUT_ROWS ? StepLayout::rows : StepLayout::columns;
  out.writer.zstd_level = o.zstd_level;
  if (o.chunk_steps != 0) out.writer.chunk_steps = o.chunk_steps;
  out.writer.sync_on_close = o.sync_ms != 0;
  out.flush_ms = o.flush_ms;
  out.sync_ms = o.sync_ms;
  out.rotate.file_bytes = o.rotate_bytes;
  out.rotate.file_us = uint64_t{o.rotate_s} * 1'000'000;
  out.rotate.keep_files = o.keep_files;
  out.sampling = text(o.sampling);
  out.trigger = text(o.trigger);
  out.header = header_of(o);
  return out;
}

// Runs `act`, which may throw; `otherwise` when it did.
template <class Act, class Value>
Value guarded(const Act& act, Value otherwise) noexcept {
  try {
    return act();
  } catch (...) {
    return otherwise;
  }
}

}  // namespace
}  // namespace redecode

using namespace redecode;

uint32_t rr_abi_version(void) { return RR_ABI_VERSION; }
const char* rr_version(void) { return REDECODE_VERSION; }

void rr_options_init(rr_options* options, size_t size) { init(options, size, default_options()); }
void rr_arrival_init(rr_arrival* arrival, size_t size) { init(arrival, size, default_arrival()); }
void rr_step_info_init(rr_step_info* step, size_t size) { init(step, size, default_step()); }
void rr_output_info_init(rr_output_info* outputs, size_t size) {
  init(outputs, size, default_outputs());
}

rr_recorder* rr_open(const rr_options* options, char* message, size_t message_size) {
  say(message, message_size, "");
  try {
    if (!is_struct(options))
      throw Error(ErrorCode::usage, "options were not made by rr_options_init");
    return new rr_recorder(options_of(filled(options, default_options())));
  } catch (const std::exception& error) {
    say(message, message_size, error.what());
  } catch (...) {
    say(message, message_size, "unknown failure");
  }
  return nullptr;
}

rr_lane* rr_lane_open(rr_recorder* recorder) {
  if (recorder == nullptr) return nullptr;
  return guarded([&] { return to_c(recorder->recorder.open_lane()); },
                 static_cast<rr_lane*>(nullptr));
}

void rr_lane_close(rr_recorder* recorder, rr_lane* lane) {
  if (recorder == nullptr || lane == nullptr) return;
  recorder->recorder.close_lane(from_c(lane));
}

uint32_t rr_request_id(rr_recorder* recorder, const char* engine_id) {
  if (recorder == nullptr || engine_id == nullptr) return RR_NO_REQUEST;
  return guarded([&] { return recorder->recorder.request_id(engine_id); }, RR_NO_REQUEST);
}

int rr_depart(rr_lane* lane, uint32_t request, int reason) {
  return lane == nullptr ? int{RR_EINVAL} : from_c(lane).depart(request, reason);
}

int rr_arrive(rr_lane* lane, const rr_arrival* arrival) {
  if (lane == nullptr || !is_struct(arrival)) return RR_EINVAL;
  return from_c(lane).arrive(filled(arrival, default_arrival()));
}

int rr_page(rr_lane* lane, uint32_t request, uint32_t index, uint32_t page, int shared) {
  return lane == nullptr ? int{RR_EINVAL} : from_c(lane).page(request, index, page, shared != 0);
}

int rr_event(rr_lane* lane, int kind, uint32_t request, uint32_t a, uint32_t b, const char* text) {
  return lane == nullptr ? int{RR_EINVAL} : from_c(lane).event(kind, request, a, b, text);
}

int rr_step(rr_lane* lane, const rr_step_info* info) {
  if (lane == nullptr || info == nullptr) return RR_EINVAL;
  if (info->size == sizeof *info) return from_c(lane).step(*info);
  return is_struct(info) ? from_c(lane).step(filled(info, default_step())) : int{RR_EINVAL};
}

int rr_step_begin(rr_lane* lane, const rr_step_info* info) {
  if (lane == nullptr || !is_struct(info)) return RR_EINVAL;
  return from_c(lane).step_begin(filled(info, default_step()));
}

int rr_step_rows(rr_lane* lane, uint32_t count, const rr_column* request, const rr_column* position,
                 const rr_column* token, const rr_column* slot, const uint8_t* wants_output) {
  if (lane == nullptr || request == nullptr || position == nullptr || token == nullptr ||
      slot == nullptr)
    return RR_EINVAL;
  return from_c(lane).step_rows(count, *request, *position, *token, *slot, wants_output);
}

int rr_step_end(rr_lane* lane) {
  return lane == nullptr ? int{RR_EINVAL} : from_c(lane).step_end();
}

int rr_outputs(rr_lane* lane, const rr_output_info* outputs) {
  if (lane == nullptr || !is_struct(outputs)) return RR_EINVAL;
  return from_c(lane).outputs(filled(outputs, default_outputs()));
}

int rr_trigger(rr_recorder* recorder) {
  if (recorder == nullptr) return RR_EINVAL;
  recorder->recorder.trigger();
  return RR_OK;
}

int rr_flush(rr_recorder* recorder, uint32_t timeout_ms, int sync) {
  if (recorder == nullptr) return RR_EINVAL;
  return guarded(
      [&] {
        if (recorder->recorder.flush(timeout_ms, sync != 0)) return int{RR_OK};
        return recorder->recorder.stats().failed != 0 ? int{RR_FAILED} : int{RR_TIMEOUT};
      },
      int{RR_FAILED});
}

void rr_stats_read(const rr_recorder* recorder, rr_stats* stats, size_t size) {
  if (recorder == nullptr || stats == nullptr) return;
  guarded(
      [&] {
        init(stats, size, recorder->recorder.stats());
        return 0;
      },
      0);
}

const char* rr_error_text(const rr_recorder* recorder) {
  if (recorder == nullptr) return "";
  return guarded(
      [&] {
        recorder->error = recorder->recorder.error_text();
        return recorder->error.c_str();
      },
      "");
}

int rr_close(rr_recorder* recorder, rr_stats* stats, size_t stats_size) {
  if (recorder == nullptr) return RR_EINVAL;
  const bool whole = guarded([&] { return recorder->recorder.close(); }, false);
  rr_stats_read(recorder, stats, stats_size);
  delete recorder;
  return whole ? RR_OK : RR_FAILED;
}
