// cli/serve_engine.h - ServeEngine: batcher, engine and recorder on one thread of their own, behind
// the endpoint's TextBackend.
//
//   endpoint's thread --inbox--> engine thread: submit, cancel, next, record, execute, update
//                     <-outbox--                 one wake-up a step
//
// Requests reach the batcher in the order in which they were submitted, their ids ascending; what
// was scheduled is in the trace, and replays bit for bit. A step's time_us is the one place where a
// clock enters; it is in no digest. Log probabilities are the model's, before temperature.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/serve_record.h"
#include "engine/batcher/batcher.h"
#include "engine/model/text_codec.h"
#include "recorder/http/text_backend.h"
#include "recorder/tap.h"
#include "replayer/engine_instance.h"
#include "traces/header.h"

namespace redecode {

struct ServeEngineOptions {
  std::string model = "dsv4-small";
  std::string served_name;  // first of the names that requests may use; empty: from the model
  std::string tokenizer;    // as make_text_codec
  BatcherOptions batcher;   // its vocab is set from the model
  Mode mode;
  int threads = 1;
  std::vector<std::string> environment;  // for the header
  std::filesystem::path record;          // empty: no trace
  bool force = false;                    // replaces an existing trace
  TapOptions tap;
  uint32_t inbox_jobs = 65536;  // submitted and not yet seen by the engine thread
};

class ServeEngine final : public TextBackend {
 public:
  // Loads the model, opens the trace, starts the thread. Errors: as EngineInstance, TraceWriter and
  // make_text_codec.
  explicit ServeEngine(const ServeEngineOptions& options);
  ~ServeEngine() override;  // stops; an error that was not yet reported is lost
  ServeEngine(const ServeEngine&) = delete;
  ServeEngine& operator=(const ServeEngine&) = delete;

  const BackendInfo& info() const override { return info_; }
  std::vector<int32_t> encode(std::string_view text) const override;
  // "<|role|>\ncontent\n" for each message, then "<|assistant|>\n".
  std::string chat_prompt(const std::vector<ChatMessage>& messages) const override;
  std::string decode(int32_t previous, int32_t token) const override;
  std::optional<JobId> submit(TextJob job) override;
  void cancel(JobId job) override;
  int event_fd() const override { return event_fd_; }
  void take_events(std::vector<BackendEvent>& out) override;
  BackendMetrics metrics() const override;
  bool failed() const override { return failed_.load(std::memory_order_acquire); }

  // Cancels what runs, records the last departures, ends the trace and joins the thread; the second
  // call does nothing. Errors: the first of the engine thread, or of the trace.
  void stop();

  const TraceHeader& header() const { return header_; }
  // Complete after stop.
  uint64_t trace_bytes() const { return record_ ? record_->totals().bytes : 0; }
  Digest trace_digest() const { return record_ ? record_->totals().digest : 0; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Submission {
    JobId id = 0;
    TextJob job;
  };

  void open_trace(const ServeEngineOptions& options);
  void run();
  void serve_until_stopped();
  bool take_inbox();  // false: stop
  void end_all(RequestEnd how);
  void run_step();
  void show_scheduled(Step& step);
  void add_output_events(const StepOutput& output);
  void add_end_events();
  void publish();
  uint64_t now_us() const;
  Request request_of(const Submission& submission) const;

  std::unique_ptr<TextCodec> codec_;
  std::unique_ptr<EngineInstance> engine_;
  std::unique_ptr<Batcher> batcher_;
  BackendInfo info_;
  TraceHeader header_;
  std::unique_ptr<ServeRecord> record_;  // null: no trace
  bool keep_logits_ = false;             // in the trace
  const uint32_t inbox_jobs_;
  const Clock::time_point start_;
  int event_fd_ = -1;

  // Of the engine thread.
  std::map<RequestId, int32_t> live_;  // job -> logprobs asked for
  std::vector<BackendEvent> events_;   // of this turn
  std::map<RequestId, size_t> event_of_;
  Histogram step_seconds_;
  std::array<uint64_t, 5> ends_{};
  uint64_t steps_ = 0, graph_steps_ = 0;

  mutable std::mutex inbox_guard_;
  std::condition_variable inbox_news_;
  std::vector<Submission> submissions_;
  std::vector<JobId> cancels_;
  JobId next_job_ = 0;
  bool stopping_ = false;

  mutable std::mutex outbox_guard_;
  std::vector<BackendEvent> outbox_;
  BackendMetrics snapshot_;

  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // of the engine thread; read after it has been joined
  bool stopped_ = false;
  std::thread thread_;  // last: starts when all else is ready
};

}  // namespace redecode
