#include "recorder/http/answering.h"

#include <algorithm>
#include <utility>

#include "traces/random.h"

namespace redecode {
namespace {

constexpr uint32_t kDefaultCompletionTokens = 16;  // as the API has it

[[noreturn]] void refuse(std::string message, std::string param, std::string code) {
  ApiError error;
  error.status = 400;
  error.message = std::move(message);
  error.param = std::move(param);
  error.code = std::move(code);
  throw error;
}

[[noreturn]] void too_long(uint64_t tokens, const char* what, uint32_t context, bool chat) {
  refuse("the context holds " + std::to_string(context) + " tokens; " + what + " come to " +
             std::to_string(tokens) + ", shorten them",
         chat ? "messages" : "prompt", "context_length_exceeded");
}

ApiError engine_error(RequestEnd end) {
  ApiError error;
  error.type = "server_error";
  error.status = end == RequestEnd::cancelled ? 503 : 500;
  error.message = end == RequestEnd::cancelled ? "the request was cancelled by the server"
                                               : "the engine could not finish the request";
  return error;
}

}  // namespace

Answering::Answering(CompletionRequest request, AnswerHead head, const TextBackend& backend,
                     JobDispatcher& dispatcher)
    : request_(std::move(request)),
      head_(std::move(head)),
      backend_(backend),
      dispatcher_(dispatcher) {
  const BackendInfo& info = backend_.info();
  const auto check_bytes = [&](const std::string& text) {
    // Encoding a text that cannot fit would only cost time.
    const uint64_t least = text.size() / std::max<uint32_t>(1, info.token_bytes);
    if (least > info.context_tokens)
      too_long(least, "the prompt's tokens, at least,", info.context_tokens, request_.chat);
  };
  if (request_.chat) {
    const std::string prompt = backend_.chat_prompt(request_.messages);
    check_bytes(prompt);
    add_prompt(backend_.encode(prompt), {});
  }
  for (const std::string& prompt : request_.prompts) {
    check_bytes(prompt);
    add_prompt(backend_.encode(prompt), request_.echo ? prompt : std::string());
  }
  for (const std::vector<int32_t>& prompt : request_.token_prompts) {
    TextStream echo({});
    std::string text;
    int32_t previous = -1;
    for (const int32_t token : prompt) {
      if (static_cast<uint32_t>(token) >= info.vocab)
        refuse("token " + std::to_string(token) + " is outside the vocabulary of " +
                   std::to_string(info.vocab),
               "prompt", "");
      if (request_.echo) text += echo.feed(backend_.decode(std::exchange(previous, token), token));
    }
    add_prompt(prompt, text + echo.finish());
  }
}

Answering::~Answering() noexcept { cancel_all(); }

uint32_t Answering::max_tokens_of(const std::vector<int32_t>& prompt) const {
  const uint32_t room = backend_.info().context_tokens - static_cast<uint32_t>(prompt.size());
  if (request_.max_tokens != 0) return request_.max_tokens;
  return request_.chat ? room : std::min(room, kDefaultCompletionTokens);
}

void Answering::add_prompt(std::vector<int32_t> tokens, std::string echo) {
  const uint32_t context = backend_.info().context_tokens;
  if (tokens.size() >= context)
    too_long(tokens.size(), "the prompt's tokens", context, request_.chat);
  const uint64_t all = tokens.size() + uint64_t{max_tokens_of(tokens)};
  if (all > context) too_long(all, "prompt and max_tokens", context, request_.chat);
  for (uint32_t i = 0; i < request_.n; ++i) {
    Choice& choice = choices_.emplace_back(request_.stop);
    choice.prompt = prompts_.size();
    choice.previous = tokens.empty() ? -1 : tokens.back();
    choice.echo_chars = count_chars(echo);
    choice.answer.index = static_cast<uint32_t>(choices_.size() - 1);
    choice.answer.text = echo;
  }
  prompts_.push_back(std::move(tokens));
  open_choices_ = choices_.size();
}

void Answering::submit(uint64_t seed) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    const uint64_t of_prompt = i % request_.n;
    TextJob job;
    job.prompt = prompts_[choice.prompt];
    job.max_tokens = max_tokens_of(job.prompt);
    job.sampling = request_.sampling;
    job.sampling.seed = of_prompt == 0 ? seed : random_bits(seed, of_prompt);
    job.ignore_eos = request_.ignore_eos;
    job.logprobs = request_.logprobs;
    const std::optional<JobId> id = dispatcher_.submit(std::move(job), *this);
    if (!id) {
      ApiError full;
      full.status = 429;
      full.type = "rate_limit_error";
      full.message = "the engine's queue is full; try again later";
      throw full;
    }
    choice.job = id;
    by_job_.emplace(*id, i);
  }
  if (!request_.stream || !request_.echo) return;
  for (Choice& choice : choices_) put(choice, std::exchange(choice.answer.text, {}), {});
}

TokenText Answering::token_text_of(const Choice& choice, const TokenLogprob& token) const {
  TokenText out;
  out.bytes = backend_.decode(choice.previous, token.token);
  out.logprob = token.logprob;
  return out;
}

std::string Answering::take_token(Choice& choice, const BackendEvent& event) {
  ++choice.output_tokens;
  if (event.end == RequestEnd::stop && event.token.token == backend_.info().end_token) return {};
  HeldToken held{token_text_of(choice, event.token), choice.text.decoded_bytes()};
  if (wants_logprobs()) {
    held.token.offset_chars = choice.echo_chars + choice.text.decoded_chars();
    bool named = false;
    for (const TokenLogprob& other : event.top) {
      held.token.top.push_back(token_text_of(choice, other));
      named = named || other.token == event.token.token;
    }
    if (!named && !request_.chat && request_.logprobs > 0) {
      TokenText own{held.token.bytes, held.token.logprob, 0, {}};
      held.token.top.push_back(std::move(own));
    }
  }
  std::string text = choice.text.feed(held.token.bytes);
  choice.previous = event.token.token;
  if (wants_logprobs()) choice.held.push_back(std::move(held));
  return text;
}

void Answering::on_event(const BackendEvent& event) {
  const auto at = by_job_.find(event.job);
  if (at == by_job_.end()) return;
  Choice& choice = choices_[at->second];
  std::string text, finish_reason;
  if (event.end) choice.job.reset();
  if (event.has_token) text = take_token(choice, event);
  if (event.end && *event.end != RequestEnd::stop && *event.end != RequestEnd::length) {
    abort(engine_error(*event.end));
    return;
  }
  if (event.end) {
    text += choice.text.finish();
    finish_reason = event.end == RequestEnd::stop ? "stop" : "length";
  }
  if (choice.text.stopped()) finish_reason = "stop";
  if (!finish_reason.empty()) end_choice(choice);
  release_tokens(choice, choice.ended);
  put(choice, std::move(text), finish_reason);
  if (open_choices_ == 0) finish_stream();
}

void Answering::end_choice(Choice& choice) {
  if (choice.job) {
    by_job_.erase(*choice.job);
    dispatcher_.forget(*std::exchange(choice.job, std::nullopt));
  }
  choice.ended = true;
  --open_choices_;
}

// Tokens whose text has begun to come out; at the end the rest too, but for those in a stop string.
void Answering::release_tokens(Choice& choice, bool ended) {
  const bool all = ended && !choice.text.stopped();
  while (!choice.held.empty() &&
         (all || choice.held.front().start_bytes < choice.text.released_bytes())) {
    choice.released.push_back(std::move(choice.held.front().token));
    choice.held.pop_front();
  }
}

void Answering::put(Choice& choice, std::string text, const std::string& finish_reason) {
  if (!request_.stream) {
    choice.answer.text += text;
    for (TokenText& token : choice.released) choice.answer.tokens.push_back(std::move(token));
    choice.released.clear();
    choice.answer.finish_reason = finish_reason;
    return;
  }
  if (text.empty() && choice.released.empty() && finish_reason.empty()) return;
  ChoiceAnswer part;
  part.index = choice.answer.index;
  part.text = std::move(text);
  part.tokens = std::exchange(choice.released, {});
  part.finish_reason = finish_reason;
  pending_ += render_event(head_, part, wants_logprobs(), std::exchange(choice.first, false));
}

void Answering::finish_stream() {
  if (!request_.stream || std::exchange(last_event_made_, true)) return;
  if (error_) {
    pending_ += render_error_event(*error_);
    return;
  }
  if (request_.include_usage) pending_ += render_usage_event(head_, usage());
  pending_ += kLastEvent;
}

void Answering::abort(const ApiError& error) {
  if (done()) return;
  error_ = error;
  cancel_all();
  finish_stream();
  wake();
}

void Answering::cancel_all() {
  for (Choice& choice : choices_)
    if (choice.job) dispatcher_.forget(*std::exchange(choice.job, std::nullopt));
  by_job_.clear();
}

void Answering::settle() {
  if (done() || !pending_.empty()) wake();
}

void Answering::wake() {
  KJ_IF_MAYBE (waker, waker_) {
    (*waker)->fulfill();
    waker_ = nullptr;
  }
}

kj::Promise<void> Answering::finished() {
  if (done()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waker_ = kj::mv(paf.fulfiller);
  return paf.promise.then([this] { return finished(); });
}

std::string Answering::whole_answer() const {
  std::vector<ChoiceAnswer> answers;
  for (const Choice& choice : choices_) answers.push_back(choice.answer);
  return render_answer(head_, answers, usage(), wants_logprobs());
}

kj::Promise<void> Answering::stream_to(kj::AsyncOutputStream& out) { return pump(out); }

kj::Promise<void> Answering::pump(kj::AsyncOutputStream& out) {
  if (!pending_.empty()) {
    auto bytes = kj::heapString(pending_.data(), pending_.size());
    pending_.clear();
    auto write = out.write(bytes.begin(), bytes.size());
    return write.attach(kj::mv(bytes)).then([this, &out] { return pump(out); });
  }
  if (done()) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waker_ = kj::mv(paf.fulfiller);
  return paf.promise.then([this, &out] { return pump(out); });
}

Usage Answering::usage() const {
  Usage out;
  for (const auto& prompt : prompts_) out.prompt_tokens += prompt.size();
  for (const Choice& choice : choices_) out.output_tokens += choice.output_tokens;
  return out;
}

}  // namespace redecode
