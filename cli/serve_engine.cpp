#include "cli/serve_engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/content_hashes.h"
#include "traces/check.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr std::string_view kCheckpoint = "llama2c:";

// Names under which requests may ask for a model; paths of this machine come last, and are not
// listed.
std::vector<std::string> names_of(const ServeEngineOptions& options, const std::string& spec) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  add(options.served_name);
  if (options.model.starts_with(kCheckpoint))
    add(std::filesystem::path(options.model.substr(kCheckpoint.size())).stem().string());
  add(options.model);
  add(spec);
  return out;
}

uint32_t context_of(const BatcherOptions& options) {
  const uint64_t slots = uint64_t{options.page_count - 1} * options.page_size;
  // The last token sampled takes no slot.
  return static_cast<uint32_t>(std::min<uint64_t>(options.max_seq_len, slots + 1));
}

float logprob_of(const RowOutput& row, int32_t token) {
  for (const TopLogit& top : row.top)
    if (top.token == token) return top.logit - row.log_sum_exp;
  const auto at = static_cast<size_t>(token);
  return at < row.logits.size() ? row.logits[at] - row.log_sum_exp : 0.0f;
}

}  // namespace

ServeEngine::ServeEngine(const ServeEngineOptions& options)
    : keep_logits_(options.mode.full_logits),
      inbox_jobs_(options.inbox_jobs),
      start_(Clock::now()) {
  Mode mode = options.mode;
  mode.full_logits = true;  // a sampled token need not be among the largest
  const EngineSettings settings = engine_settings(options.batcher);
  engine_ = std::make_unique<EngineInstance>(
      EngineRequest{options.model, settings, mode, options.threads, false, true});
  const ModelIdentity identity = engine_->identity();
  BatcherOptions batcher = options.batcher;
  batcher.vocab = identity.vocab;
  batcher_ = std::make_unique<Batcher>(batcher);
  codec_ = make_text_codec(options.model, identity.vocab, options.tokenizer);
  info_.models = names_of(options, identity.spec);
  info_.fingerprint = "redecode-" + digest_hex(identity.weights_digest);
  info_.context_tokens = context_of(batcher_->options());
  info_.vocab = identity.vocab;
  info_.token_bytes = codec_->token_bytes();
  info_.end_token = codec_->end_token();
  open_trace(options);
  event_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_fd_ < 0)
    throw Error(ErrorCode::environment,
                std::string("cannot make an event descriptor: ") + std::strerror(errno));
  thread_ = std::thread([this] { run(); });
}

ServeEngine::~ServeEngine() {
  try {
    stop();
  } catch (const std::exception&) {
    // Whoever wants to know calls stop.
  }
  if (event_fd_ >= 0) close(event_fd_);
}

void ServeEngine::open_trace(const ServeEngineOptions& options) {
  header_.writer = writer_name();
  header_.model = engine_->identity();
  header_.engine = engine_->model().settings();
  header_.mode = options.mode;
  header_.workload = "serve";
  header_.environment = options.environment;
  header_.started_unix_us = std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count();
  if (options.record.empty()) return;
  add_content_hashes(options.model, options.tokenizer, header_.model);
  record_ = std::make_unique<ServeRecord>(options.record, header_, options.force, options.tap);
}

std::vector<int32_t> ServeEngine::encode(std::string_view text) const {
  return codec_->encode(text);
}

std::string ServeEngine::chat_prompt(const std::vector<ChatMessage>& messages) const {
  std::string out;
  for (const ChatMessage& message : messages)
    out += "<|" + message.role + "|>\n" + message.content + "\n";
  return out + "<|assistant|>\n";
}

std::string ServeEngine::decode(int32_t previous, int32_t token) const {
  return codec_->decode(previous, token);
}

std::optional<JobId> ServeEngine::submit(TextJob job) {
  JobId id = 0;
  {
    const std::lock_guard lock(inbox_guard_);
    if (stopping_ || failed() || submissions_.size() >= inbox_jobs_ || next_job_ == kNoRequest)
      return std::nullopt;
    id = next_job_++;
    submissions_.push_back({id, std::move(job)});
  }
  inbox_news_.notify_one();
  return id;
}

void ServeEngine::cancel(JobId job) {
  {
    const std::lock_guard lock(inbox_guard_);
    cancels_.push_back(job);
  }
  inbox_news_.notify_one();
}

void ServeEngine::take_events(std::vector<BackendEvent>& out) {
  uint64_t count = 0;
  while (read(event_fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(outbox_guard_);
  if (out.empty()) {
    out.swap(outbox_);
  } else {
    std::move(outbox_.begin(), outbox_.end(), std::back_inserter(out));
    outbox_.clear();
  }
}

BackendMetrics ServeEngine::metrics() const {
  BackendMetrics out;
  {
    const std::lock_guard lock(outbox_guard_);
    out = snapshot_;
  }
  {
    const std::lock_guard lock(inbox_guard_);
    out.waiting += static_cast<uint32_t>(submissions_.size());
  }
  if (record_) record_->add_to(out);
  return out;
}

void ServeEngine::stop() {
  if (std::exchange(stopped_, true)) return;
  {
    const std::lock_guard lock(inbox_guard_);
    stopping_ = true;
  }
  inbox_news_.notify_one();
  if (thread_.joinable()) thread_.join();
  try {
    if (record_) record_->close();
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
  if (error_) std::rethrow_exception(error_);
}

void ServeEngine::run() {
  try {
    serve_until_stopped();
    return;
  } catch (...) {
    error_ = std::current_exception();
  }
  failed_.store(true, std::memory_order_release);
  {
    const std::lock_guard lock(inbox_guard_);
    for (const Submission& one : submissions_) live_.emplace(one.id, 0);
    submissions_.clear();
  }
  for (const auto& [job, logprobs] : live_) {
    BackendEvent event;
    event.job = job;
    event.end = RequestEnd::failed;
    events_.push_back(std::move(event));
  }
  live_.clear();
  publish();
}

void ServeEngine::serve_until_stopped() {
  while (take_inbox()) {
    add_end_events();
    if (!batcher_->idle()) run_step();
    publish();
  }
  end_all(RequestEnd::cancelled);
  Step step;
  if (batcher_->departures_only(step)) show_scheduled(step);
  publish();
}

bool ServeEngine::take_inbox() {
  std::vector<Submission> submissions;
  std::vector<JobId> cancels;
  {
    std::unique_lock lock(inbox_guard_);
    if (batcher_->idle())
      inbox_news_.wait(lock,
                       [&] { return stopping_ || !submissions_.empty() || !cancels_.empty(); });
    if (stopping_) return false;
    submissions.swap(submissions_);
    cancels.swap(cancels_);
  }
  for (Submission& one : submissions) {
    live_.emplace(one.id, one.job.logprobs);
    batcher_->submit(request_of(one));
  }
  for (const JobId job : cancels)
    if (live_.contains(job)) batcher_->cancel(job);
  return true;
}

Request ServeEngine::request_of(const Submission& submission) const {
  Request request;
  request.id = submission.id;
  request.session = submission.id;
  request.prompt = submission.job.prompt;
  request.max_tokens = submission.job.max_tokens;
  request.stop_token = submission.job.ignore_eos ? -1 : info_.end_token;
  request.sampling = submission.job.sampling;
  return request;
}

void ServeEngine::end_all(RequestEnd how) {
  std::vector<RequestId> jobs;
  for (const auto& [job, logprobs] : live_) jobs.push_back(job);
  for (const RequestId job : jobs) batcher_->cancel(job);
  {
    const std::lock_guard lock(inbox_guard_);
    for (const Submission& one : submissions_) {
      BackendEvent event;
      event.job = one.id;
      event.end = how;
      events_.push_back(std::move(event));
    }
    submissions_.clear();
  }
  add_end_events();
}

uint64_t ServeEngine::now_us() const {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_);
  return static_cast<uint64_t>(std::max<int64_t>(1, since.count()));
}

void ServeEngine::show_scheduled(Step& step) {
  step.time_us = now_us();
  if (record_) record_->scheduled(step);
}

void ServeEngine::run_step() {
  Step step;
  REDECODE_CHECK(batcher_->next(step));
  show_scheduled(step);
  const Clock::time_point begin = Clock::now();
  StepOutput output = engine_->decoder().run(step);
  step_seconds_.add(std::chrono::duration<double>(Clock::now() - begin).count());
  ++steps_;
  graph_steps_ += engine_->decoder().last_was_graph() ? 1 : 0;
  add_output_events(output);
  if (!keep_logits_)
    for (RowOutput& row : output.rows) row.logits.clear();
  if (record_) record_->produced(output);
  batcher_->update(output);
  add_end_events();
}

void ServeEngine::add_output_events(const StepOutput& output) {
  for (const RowOutput& row : output.rows) {
    BackendEvent event;
    event.job = row.request;
    event.has_token = true;
    event.token.token = row.token;
    const auto job = live_.find(row.request);
    if (job != live_.end() && job->second >= 0) {
      event.token.logprob = logprob_of(row, row.token);
      const size_t count = std::min(row.top.size(), static_cast<size_t>(job->second));
      for (size_t i = 0; i < count; ++i)
        event.top.push_back({row.top[i].token, row.top[i].logit - row.log_sum_exp});
    }
    event_of_[row.request] = events_.size();
    events_.push_back(std::move(event));
  }
}

void ServeEngine::add_end_events() {
  for (const FinishedRequest& done : batcher_->take_finished()) {
    ++ends_.at(static_cast<size_t>(done.end));
    live_.erase(done.request.id);
    const auto at = event_of_.find(done.request.id);
    if (at != event_of_.end()) {
      events_[at->second].end = done.end;
      continue;
    }
    BackendEvent event;
    event.job = done.request.id;
    event.end = done.end;
    events_.push_back(std::move(event));
  }
}

void ServeEngine::publish() {
  const BatcherCounters& counters = batcher_->counters();
  bool wake = false;
  {
    const std::lock_guard lock(outbox_guard_);
    wake = outbox_.empty() && !events_.empty();
    std::move(events_.begin(), events_.end(), std::back_inserter(outbox_));
    snapshot_.steps = steps_;
    snapshot_.graph_steps = graph_steps_;
    snapshot_.prompt_rows = counters.prompt_rows;
    snapshot_.cached_tokens = counters.cached_tokens;
    snapshot_.output_tokens = counters.output_tokens;
    snapshot_.submitted = counters.submitted;
    snapshot_.preemptions = counters.preemptions;
    snapshot_.ends = ends_;
    snapshot_.waiting = batcher_->waiting();
    snapshot_.running = batcher_->running();
    snapshot_.step_seconds = step_seconds_;
  }
  events_.clear();
  event_of_.clear();
  if (!wake && !failed()) return;
  const uint64_t one = 1;
  while (write(event_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace redecode
