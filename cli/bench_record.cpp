#include "cli/bench_record.h"

#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/decode_workload.h"
#include "cli/live_session.h"
#include "cli/output.h"
#include "recorder/abi/redecode_record.h"
#include "recorder/abi/trace_target.h"
#include "recorder/ring/assembler.h"
#include "recorder/tap.h"
#include "traces/check.h"
#include "traces/error.h"
#include "traces/plain_step.h"
#include "traces/thousands.h"
#include "traces/value_text.h"
#include "traces/zstd_frame.h"

namespace redecode {
namespace {

struct Options {
  uint32_t batch = 64, page_size = 256;
  uint64_t steps = 200000, size_steps = 12000, gap_us = 20;
  bool engine = true;
};

uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// A folder of its own, gone with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "redecode-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::environment, "cannot make a folder for the measurement", name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// A step as an engine holds it: one array a property.
struct Columns {
  void fill(const Step& step) {
    arrivals = step.arrivals;
    departures = step.departures;
    pages = step.page_changes;
    for (auto* column : {&request, &position, &token, &slot}) column->clear();
    for (const Row& row : step.rows) {
      request.push_back(row.request);
      position.push_back(row.position);
      token.push_back(static_cast<uint32_t>(row.token));
      slot.push_back(row.slot);
    }
    rr_step_info_init(&info, sizeof info);
    info.rows = info.bucket = static_cast<uint32_t>(step.rows.size());
  }
  void books(rr_lane* lane) const {
    for (const Departure& d : departures) rr_depart(lane, d.request, static_cast<int>(d.reason));
    for (const Arrival& a : arrivals) {
      rr_arrival arrival;
      rr_arrival_init(&arrival, sizeof arrival);
      arrival.request = a.request;
      arrival.session = a.session;
      arrival.prompt_tokens = a.prompt_tokens;
      arrival.cached_tokens = a.cached_tokens;
      arrival.max_tokens = a.max_tokens;
      rr_arrive(lane, &arrival);
    }
    for (const PageChange& p : pages) rr_page(lane, p.request, p.index, p.page, 0);
  }
  int step(rr_lane* lane) {
    info.request = {request.data(), 0, 4};
    info.position = {position.data(), 0, 4};
    info.token = {token.data(), 0, 4};
    info.slot = {slot.data(), 0, 4};
    return rr_step(lane, &info);
  }
  std::vector<Arrival> arrivals;
  std::vector<Departure> departures;
  std::vector<PageChange> pages;
  std::vector<uint32_t> request, position, token, slot;
  rr_step_info info;
};

struct Percentiles {
  uint64_t p50 = 0, p99 = 0, p999 = 0, max = 0;
};

Percentiles percentiles(std::vector<uint32_t>& samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[std::min(samples.size() - 1,
                            static_cast<size_t>(share * static_cast<double>(samples.size())))];
  };
  return {at(0.5), at(0.99), at(0.999), samples.back()};
}

struct HotPath {
  Percentiles call, clock;
  rr_stats stats{};
};

// Single calls, each timed by itself, `gap_us` apart, the recorder's own thread at work beside
// them.
HotPath measure_hot_path(const Options& o, const Scratch& scratch) {
  const std::string path = scratch.file("hot.rdt");
  rr_options options;
  rr_options_init(&options, sizeof options);
  options.path = path.c_str();
  options.page_size = o.page_size;
  options.vocab = DecodeWorkload::kVocab;
  char message[256];
  rr_recorder* recorder = rr_open(&options, message, sizeof message);
  if (recorder == nullptr) throw Error(ErrorCode::environment, message);
  rr_lane* lane = rr_lane_open(recorder);
  REDECODE_CHECK(lane != nullptr);
  DecodeWorkload workload(o.batch, o.page_size, 1);
  constexpr size_t kPrepared = 4096;
  std::vector<Step> prepared;
  Columns columns;
  std::vector<uint32_t> samples, clock;
  samples.reserve(o.steps);
  clock.reserve(o.steps);
  for (uint64_t i = 0; i < o.steps; ++i) {
    if (i % kPrepared == 0) {
      prepared.clear();
      for (size_t k = 0; k < kPrepared; ++k) prepared.push_back(workload.next());
    }
    // As a scheduler does: the same arrays, filled anew for each step.
    columns.fill(prepared[i % kPrepared]);
    columns.books(lane);
    const uint64_t wait_until = now_ns() + o.gap_us * 1000;
    while (now_ns() < wait_until) {
    }
    const uint64_t begin = now_ns();
    const uint64_t again = now_ns();
    columns.step(lane);
    const uint64_t end = now_ns();
    clock.push_back(static_cast<uint32_t>(again - begin));
    samples.push_back(static_cast<uint32_t>(std::min<uint64_t>(end - again, UINT32_MAX)));
  }
  HotPath out;
  rr_close(recorder, &out.stats, sizeof out.stats);
  out.call = percentiles(samples);
  out.clock = percentiles(clock);
  return out;
}

struct Consumer {
  double us_per_step = 0;
  double bytes_per_step = 0;
};

// The recorder's thread alone: raw records from a ring to closed chunks, its CPU time.
Consumer measure_consumer(const Options& o, const Scratch& scratch, StepLayout layout,
                          const std::vector<Step>& steps) {
  const std::string path = scratch.file(layout == StepLayout::rows ? "rows.rdt" : "columns.rdt");
  DecodeWorkload workload(o.batch, o.page_size, 1);
  WriterOptions writer;
  writer.layout = layout;
  writer.chunk_steps = 4096;
  double seconds = 0;
  // The least of some turns: other processes only ever add to it.
  for (int turn = 0; turn < 7; ++turn) {
    TraceTarget target(TraceSetWriter(path, workload.header(), writer, {}, true), Sampler("all"));
    const uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (const Step& step : steps) target.take(step);
    target.writer().close();
    const double taken = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-9;
    seconds = turn == 0 ? taken : std::min(seconds, taken);
  }
  const auto count = static_cast<double>(steps.size());
  return {.us_per_step = seconds * 1e6 / count,
          .bytes_per_step = static_cast<double>(std::filesystem::file_size(path)) / count};
}

struct Naive {
  double messages = 0, messages_zstd = 0, json = 0, json_zstd = 0;  // bytes a step
};

Naive measure_naive(const std::vector<Step>& steps) {
  constexpr size_t kChunkBytes = size_t{1} << 20;
  FrameCompressor compressor(1);
  Naive out;
  const auto sizes = [&](const auto& encode, double& plain, double& packed) {
    std::vector<uint8_t> chunk;
    for (size_t i = 0; i < steps.size(); ++i) {
      encode(steps[i], chunk);
      if (chunk.size() < kChunkBytes && i + 1 != steps.size()) continue;
      plain += static_cast<double>(chunk.size());
      packed += static_cast<double>(compressor.compress(chunk).size());
      chunk.clear();
    }
    plain /= static_cast<double>(steps.size());
    packed /= static_cast<double>(steps.size());
  };
  sizes([](const Step& step, std::vector<uint8_t>& chunk) { append_plain_step(step, chunk); },
        out.messages, out.messages_zstd);
  sizes(
      [](const Step& step, std::vector<uint8_t>& chunk) {
        JsonWriter json;
        write_json(step, json);
        const std::string line = json.take() + "\n";
        chunk.insert(chunk.end(), line.begin(), line.end());
      },
      out.json, out.json_zstd);
  return out;
}

// Decode throughput of the engine with its steps and outputs recorded, to without: pairs in turns.
double measure_engine_ratio(const Scratch& scratch) {
  LiveRequest request;
  request.workload = parse_workload("agent sessions=16 rounds=2 ctx=200 max_tokens=24");
  request.batcher = live_options(request.model);
  class Nothing final : public StepSink {
    void scheduled(const Step&) override {}
    void produced(const StepOutput&) override {}
  } nothing;
  std::vector<double> ratios;
  for (int pair = 0; pair < 5; ++pair) {
    const double off =
        record_live(request, [&](const TraceHeader&) -> StepSink& { return nothing; }).seconds;
    std::unique_ptr<Tap> tap;
    const double on =
        record_live(request, [&](const TraceHeader& header) -> StepSink& {
          tap = std::make_unique<Tap>(TraceWriter(scratch.file("engine.rdt"), header, {}, true));
          return *tap;
        }).seconds;
    tap->close();
    ratios.push_back(off / on);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

std::string ns(uint64_t value) { return with_thousands(value) + " ns"; }

std::string percentile_text(const Percentiles& p) {
  return "p50 " + ns(p.p50) + ", p99 " + ns(p.p99) + ", p99.9 " + ns(p.p999) + ", max " + ns(p.max);
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

void write_percentiles(JsonWriter& json, const char* name, const Percentiles& p) {
  json.key(name).begin_object().member("p50", p.p50).member("p99", p.p99);
  json.member("p999", p.p999).member("max", p.max).end_object();
}

int run_bench_record(const CommandContext& context, const Options& o) {
  const Scratch scratch;
  std::vector<Step> steps;
  DecodeWorkload workload(o.batch, o.page_size, 1);
  for (uint64_t i = 0; i < o.size_steps; ++i) steps.push_back(workload.next());
  const HotPath hot = measure_hot_path(o, scratch);
  const Consumer rows = measure_consumer(o, scratch, StepLayout::rows, steps);
  const Consumer columns = measure_consumer(o, scratch, StepLayout::columns, steps);
  const Naive naive = measure_naive(steps);
  const double ratio = o.engine ? measure_engine_ratio(scratch) : 0;

  const auto bytes = [](double value) { return tenths(value) + " bytes a step"; };
  std::string text = "recording, batch " + std::to_string(o.batch) + ", pages of " +
                     std::to_string(o.page_size) + " tokens\n";
  text += labelled("one call", percentile_text(hot.call));
  text += labelled("clock alone", percentile_text(hot.clock) + ", counted in each call");
  text += labelled("dropped", with_thousands(hot.stats.steps_dropped) + " of " +
                                  with_thousands(hot.stats.steps_seen) + " steps");
  text += labelled("consumer", "columns " + two_digits(columns.us_per_step) + " us a step, rows " +
                                   two_digits(rows.us_per_step) +
                                   " us a step, of CPU time, least of 7");
  text += labelled("columns", bytes(columns.bytes_per_step));
  text += labelled("rows", bytes(rows.bytes_per_step));
  text += labelled("one message", bytes(naive.messages) + ", zstd " + bytes(naive.messages_zstd));
  text += labelled("JSON lines", bytes(naive.json) + ", zstd " + bytes(naive.json_zstd));
  if (o.engine) text += labelled("engine", two_digits(ratio) + " of its speed without recording");
  JsonWriter json;
  json.begin_object().member("batch", o.batch).member("page_size", o.page_size);
  write_percentiles(json, "call_ns", hot.call);
  write_percentiles(json, "clock_ns", hot.clock);
  json.member("steps", hot.stats.steps_seen).member("steps_dropped", hot.stats.steps_dropped);
  json.member("consumer_us_columns", columns.us_per_step);
  json.member("consumer_us_rows", rows.us_per_step);
  json.member("bytes_columns", columns.bytes_per_step).member("bytes_rows", rows.bytes_per_step);
  json.member("bytes_message", naive.messages).member("bytes_message_zstd", naive.messages_zstd);
  json.member("bytes_json", naive.json).member("bytes_json_zstd", naive.json_zstd);
  if (o.engine) json.member("engine_ratio", ratio);
  json.end_object();
  emit(context, text, json.take());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, CommandContext& context) {
  CLI::App* bench = app.add_subcommand("bench", "What this program promises, measured here");
  bench->footer("Example:\n  redecode bench record");
  bench->require_subcommand(1);
  CLI::App* record = add_command(*bench, context, "record", "Cost and size of recording",
                                 "redecode bench record --batch 64");
  auto o = std::make_shared<Options>();
  record->add_option("--batch", o->batch, "Rows of a step")->check(CLI::Range(1, 4096));
  record->add_option("--page-size", o->page_size, "Tokens a KV page")->check(CLI::Range(1, 65536));
  record->add_option("--steps", o->steps, "Calls that are timed")->check(CLI::Range(100, 10000000));
  record->add_option("--size-steps", o->size_steps, "Steps of the files that are weighed")
      ->check(CLI::Range(100, 1000000));
  record->add_option("--gap", o->gap_us, "Microseconds between calls");
  record->add_flag("!--no-engine", o->engine, "Leave the decode engine out");
  on_run(record, context, [&context, o] { return run_bench_record(context, *o); });
}

}  // namespace redecode
