// recorder/http/answering.h - Answering: one completion request from its choices' submission to
// the bytes of its answer.
#pragma once
#include <kj/async-io.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recorder/http/answer.h"
#include "recorder/http/dispatcher.h"
#include "recorder/http/openai.h"
#include "recorder/http/text_stream.h"

namespace redecode {

// Lives on the endpoint's event loop; its destructor cancels the choices that still run.
class Answering final : public JobListener {
 public:
  // Turns the prompts into tokens and checks them. Throws ApiError 400 (a prompt too long, a token
  // outside the vocabulary).
  Answering(CompletionRequest request, AnswerHead head, const TextBackend& backend,
            JobDispatcher& dispatcher);
  ~Answering() noexcept override;
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  bool streamed() const { return request_.stream; }
  // Submits every choice; choice i of a prompt draws by a seed of (seed, i). Throws ApiError 429
  // when the backend takes no more.
  void submit(uint64_t seed);

  // Not streamed: resolves when every choice has ended, or abort was called.
  kj::Promise<void> finished();
  const std::optional<ApiError>& error() const { return error_; }
  std::string whole_answer() const;

  // Streamed: writes events as they come; resolves after the last.
  kj::Promise<void> stream_to(kj::AsyncOutputStream& out);

  // Cancels what runs; the answer is `error`. No effect once all has ended.
  void abort(const ApiError& error);
  // Every choice has ended, or abort was called.
  bool done() const { return open_choices_ == 0 || error_.has_value(); }

  void on_event(const BackendEvent& event) override;
  void settle() override;

 private:
  struct HeldToken {
    TokenText token;
    uint64_t start_bytes = 0;  // where it begins in the choice's text
  };
  struct Choice {
    explicit Choice(const std::vector<std::string>& stops) : text(stops) {}
    std::optional<JobId> job;  // while it runs
    size_t prompt = 0;
    TextStream text;
    int32_t previous = -1;            // token before the next one
    uint64_t echo_chars = 0;          // in front of `text`
    std::deque<HeldToken> held;       // their text is not out yet
    std::vector<TokenText> released;  // of the event or answer that is being made
    uint64_t output_tokens = 0;
    ChoiceAnswer answer;  // not streamed: all of it
    bool first = true;    // nothing of it has been streamed
    bool ended = false;
  };

  void add_prompt(std::vector<int32_t> tokens, std::string echo);
  uint32_t max_tokens_of(const std::vector<int32_t>& prompt) const;
  std::string take_token(Choice& choice, const BackendEvent& event);
  TokenText token_text_of(const Choice& choice, const TokenLogprob& token) const;
  void release_tokens(Choice& choice, bool ended);
  void put(Choice& choice, std::string text, const std::string& finish_reason);
  void end_choice(Choice& choice);
  void finish_stream();
  void cancel_all();
  void wake();
  kj::Promise<void> pump(kj::AsyncOutputStream& out);
  Usage usage() const;
  bool wants_logprobs() const { return request_.logprobs >= 0; }

  const CompletionRequest request_;
  const AnswerHead head_;
  const TextBackend& backend_;
  JobDispatcher& dispatcher_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<Choice> choices_;
  std::map<JobId, size_t> by_job_;
  size_t open_choices_ = 0;
  std::optional<ApiError> error_;
  std::string pending_;  // events not yet handed to the connection
  bool last_event_made_ = false;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waker_;
};

}  // namespace redecode
