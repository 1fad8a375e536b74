#include "recorder/http/endpoint_service.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "traces/error.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr const char* kJson = "application/json";
constexpr size_t kReadBytes = 64 * 1024;
constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kOther = "other";  // the label of paths that are not ours

ApiError error_of(unsigned status, std::string message, std::string code = {},
                  std::string type = "invalid_request_error") {
  ApiError error;
  error.status = status;
  error.message = std::move(message);
  error.code = std::move(code);
  error.type = std::move(type);
  return error;
}

ApiError error_of(const Error& e) {
  ApiError error = error_of(400, e.message());
  if (e.code() == ErrorCode::usage || e.code() == ErrorCode::limit)
    error.param = e.context();
  else if (!e.context().empty())
    error.message += " (" + e.context() + ")";
  return error;
}

// "%2F" and the like; what is no such pair stays.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
  };
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool pair = text[at] == '%' && at + 2 < text.size() && digit(text[at + 1]) >= 0 &&
                      digit(text[at + 2]) >= 0;
    out += pair ? static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2])) : text[at];
    if (pair) at += 2;
  }
  return out;
}

bool is_json_type(kj::StringPtr type) {
  std::string word(type.begin(), type.size());
  word.resize(std::min(word.find(';'), word.size()));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  while (!word.empty() && word.back() == ' ') word.pop_back();
  return word == kJson;
}

bool knows(const BackendInfo& info, const std::string& model) {
  return model.empty() ||
         std::find(info.models.begin(), info.models.end(), model) != info.models.end();
}

ApiError unknown_model(const std::string& model, const BackendInfo& info) {
  ApiError error = error_of(404,
                            "the model '" + model.substr(0, 200) + "' is not served here; '" +
                                info.models.front() + "' is",
                            "model_not_found");
  error.param = "model";
  return error;
}

std::string hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) out[i] = kDigits[value & 15];
  return out;
}

bool is_label(const std::string& path) {
  constexpr std::array<std::string_view, 5> kPaths = {kCompletions, kChat, "/v1/models", "/health",
                                                      "/metrics"};
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

}  // namespace

ApiError draining_error() {
  return error_of(503, "the server is ending; send this elsewhere", "draining", "server_error");
}

bool ActiveRequest::client_gone() const {
  if (fd_ < 0) return false;
  char byte = 0;
  const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void ActiveRequest::cut(const char* why) {
  cutter->reject(
      kj::Exception(kj::Exception::Type::DISCONNECTED, __FILE__, __LINE__, kj::heapString(why)));
}

bool EndpointService::authorized(const kj::HttpHeaders& headers) const {
  const std::string& wanted = state_.options.token;
  if (wanted.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  KJ_IF_MAYBE (value, headers.get(state_.headers.authorization)) {
    std::string given(value->begin(), value->size());
    if (given.size() < kScheme.size()) return false;
    for (size_t i = 0; i < kScheme.size() - 1; ++i)
      if ((given[i] | 32) != kScheme[i]) return false;
    return given[kScheme.size() - 1] == ' ' && same_token(given.substr(kScheme.size()), wanted);
  }
  return false;
}

std::optional<ApiError> EndpointService::refusal_of_post(const kj::HttpHeaders& headers) const {
  if (state_.draining) return draining_error();
  if (state_.backend.failed())
    return error_of(503, "the engine has ended by an error", "", "server_error");
  KJ_IF_MAYBE (type, headers.get(kj::HttpHeaderId::CONTENT_TYPE)) {
    if (!is_json_type(*type)) return error_of(415, "the body must be application/json");
  }
  return std::nullopt;
}

kj::Promise<void> EndpointService::request(kj::HttpMethod method, kj::StringPtr url,
                                           const kj::HttpHeaders& headers,
                                           kj::AsyncInputStream& body, Response& response) {
  ++state_.metrics.requests;
  std::string path(url.begin(), url.size());
  path.resize(std::min(path.find('?'), path.size()));
  const std::string label = is_label(path) ? path : kOther;
  if (path != "/health" && !authorized(headers))
    return send_error(label,
                      error_of(401, "this server needs its bearer token", "invalid_api_key",
                               "authentication_error"),
                      response);
  const bool post = path == kCompletions || path == kChat;
  const bool known = is_label(path) || path.starts_with("/v1/models/");
  if (!known)
    return send_error(label, error_of(404, "there is no such path", "not_found"), response);
  const bool method_fits = post ? method == kj::HttpMethod::POST
                                : method == kj::HttpMethod::GET || method == kj::HttpMethod::HEAD;
  if (!method_fits)
    return send_error(
        label, error_of(405, std::string("this path takes ") + (post ? "POST" : "GET") + " only"),
        response);
  if (!post) return get(path, response);
  if (const auto refused = refusal_of_post(headers)) return send_error(label, *refused, response);
  return complete(path == kChat, body, response);
}

kj::Promise<void> EndpointService::get(const std::string& path, Response& response) {
  const BackendInfo& info = state_.backend.info();
  if (path == "/health") {
    if (state_.draining) return send_error(path, draining_error(), response);
    if (state_.backend.failed())
      return send_error(path, error_of(503, "the engine has ended by an error", "", "server_error"),
                        response);
    return send(path, kJson, "{\"status\":\"ok\"}", response);
  }
  if (path == "/metrics") {
    EndpointMetrics& metrics = state_.metrics;
    metrics.active_requests = state_.active.size();
    metrics.waiting_choices = state_.dispatcher.waiting();
    metrics.live_choices = state_.dispatcher.live();
    return send(path, "text/plain; version=0.0.4; charset=utf-8",
                render_metrics(metrics, state_.backend.metrics()), response);
  }
  if (path == "/v1/models")
    return send(path, kJson,
                render_model_list(info.models.front(), state_.started_unix_s, info.context_tokens),
                response);
  const std::string model =
      percent_decoded(std::string_view(path).substr(std::string_view("/v1/models/").size()));
  if (model.empty() || !knows(info, model))
    return send_error("/v1/models", unknown_model(model, info), response);
  return send("/v1/models", kJson,
              render_model(info.models.front(), state_.started_unix_s, info.context_tokens),
              response);
}

kj::Promise<void> EndpointService::complete(bool chat, kj::AsyncInputStream& body,
                                            Response& response) {
  auto active = kj::heap<ActiveRequest>(state_, fd_);
  ActiveRequest& request = *active;
  auto cut = kj::newPromiseAndFulfiller<void>();
  request.cutter = kj::mv(cut.fulfiller);
  return read_body(request, body)
      .then([this, &request, &response, chat](Body&& whole) {
        return answer(request, kj::mv(whole), chat, response);
      })
      .exclusiveJoin(kj::mv(cut.promise))
      .attach(kj::mv(active));
}

kj::Promise<EndpointService::Body> EndpointService::read_body(ActiveRequest& active,
                                                              kj::AsyncInputStream& body) {
  const uint64_t most = state_.options.request.body_bytes;
  KJ_IF_MAYBE (length, body.tryGetLength()) {
    if (*length > most)
      return Body{{},
                  error_of(413, "the body has " + std::to_string(*length) + " bytes, at most " +
                                    std::to_string(most) + " are taken")};
  }
  auto too_slow =
      state_.timer.afterDelay(state_.options.body_timeout_ms * kj::MILLISECONDS).then([] {
        return Body{{}, error_of(408, "the body came too slowly", "timeout")};
      });
  return read_more(active, body, {}).exclusiveJoin(kj::mv(too_slow));
}

kj::Promise<EndpointService::Body> EndpointService::read_more(ActiveRequest& active,
                                                              kj::AsyncInputStream& body,
                                                              std::string so_far) {
  auto buffer = kj::heapArray<char>(kReadBytes);
  auto read = body.tryRead(buffer.begin(), 1, buffer.size());
  return read.then([this, &active, &body, buffer = kj::mv(buffer),
                    text = std::move(so_far)](size_t got) mutable -> kj::Promise<Body> {
    if (got == 0) return Body{std::move(text), std::nullopt};
    active.body_bytes += got;
    state_.body_bytes += got;
    if (text.size() + got > state_.options.request.body_bytes)
      return Body{{},
                  error_of(413, "the body has more than " +
                                    std::to_string(state_.options.request.body_bytes) + " bytes")};
    if (state_.body_bytes > state_.options.max_body_bytes)
      return Body{{},
                  error_of(429, "too many bodies are being read; try again later", "overloaded",
                           "rate_limit_error")};
    text.append(buffer.begin(), got);
    return read_more(active, body, std::move(text));
  });
}

void EndpointService::begin(ActiveRequest& active, Body body, bool chat) {
  if (body.error) throw *body.error;
  active.begun = true;
  active.begun_at = ActiveRequest::Clock::now();
  if (state_.draining) throw draining_error();
  CompletionRequest request = parse_completion_request(body.bytes, chat, state_.options.request);
  const BackendInfo& info = state_.backend.info();
  if (!knows(info, request.model)) throw unknown_model(request.model, info);
  const uint64_t prompts =
      chat ? 1 : uint64_t{request.prompts.size()} + request.token_prompts.size();
  const uint64_t choices = prompts * request.n, most = state_.options.max_waiting;
  if (choices > most)
    throw error_of(400, "prompts times n are " + std::to_string(choices) + " choices, at most " +
                            std::to_string(most) + " are taken");
  if (state_.dispatcher.waiting() + choices > most)
    throw error_of(429, "too many choices wait; try again later", "overloaded", "rate_limit_error");
  AnswerHead head;
  head.chat = chat;
  head.id = (chat ? "chatcmpl-" : "cmpl-") + hex(random_bits(state_.id_key, active.number()));
  head.created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  head.model = info.models.front();
  head.fingerprint = info.fingerprint;
  const uint64_t seed = request.has_seed
                            ? request.sampling.seed
                            : random_bits(state_.options.seed_key, state_.unseeded++, 1);
  active.answering = std::make_unique<Answering>(std::move(request), std::move(head),
                                                 state_.backend, state_.dispatcher);
  active.answering->submit(seed);
  state_.body_bytes -= std::exchange(active.body_bytes, 0);
}

kj::Promise<void> EndpointService::answer(ActiveRequest& active, Body body, bool chat,
                                          Response& response) {
  const std::string path = chat ? kChat : kCompletions;
  std::optional<ApiError> refused;
  try {
    begin(active, std::move(body), chat);
  } catch (const ApiError& e) {
    refused = e;
  } catch (const Error& e) {
    refused = error_of(e);
  }
  if (refused) {
    active.answering.reset();
    return send_error(path, *refused, response);
  }
  if (active.answering->streamed()) return stream(active, path, response);
  return active.answering->finished().then([this, &active, path, &response] {
    const Answering& answering = *active.answering;
    return answering.error() ? send_error(path, *answering.error(), response)
                             : send(path, kJson, answering.whole_answer(), response);
  });
}

kj::Promise<void> EndpointService::stream(ActiveRequest& active, const std::string& path,
                                          Response& response) {
  ++state_.metrics.answers[{path, 200}];
  kj::HttpHeaders headers(state_.table);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, "text/event-stream; charset=utf-8");
  headers.set(state_.headers.cache_control, "no-store");
  auto out = response.send(200, "OK", headers);
  auto written = active.answering->stream_to(*out);
  return written.attach(kj::mv(out));
}

kj::Promise<void> EndpointService::send_error(const std::string& path, const ApiError& error,
                                              Response& response) {
  kj::HttpHeaders headers(state_.table);
  if (error.status == 401) headers.set(state_.headers.www_authenticate, "Bearer");
  if (error.status == 429 || error.status == 503) headers.set(state_.headers.retry_after, "1");
  if (error.status == 405)
    headers.set(state_.headers.allow, path == kCompletions || path == kChat ? "POST" : "GET, HEAD");
  return send(path, error.status, kJson, render_error(error), headers, response);
}

kj::Promise<void> EndpointService::send(const std::string& path, const char* type,
                                        const std::string& text, Response& response) {
  kj::HttpHeaders headers(state_.table);
  return send(path, 200, type, text, headers, response);
}

kj::Promise<void> EndpointService::send(const std::string& path, unsigned status, const char* type,
                                        const std::string& text, kj::HttpHeaders& headers,
                                        Response& response) {
  ++state_.metrics.answers[{path, status}];
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  auto bytes = kj::heapString(text.data(), text.size());
  auto out = response.send(status, status_text(status), headers, bytes.size());
  auto written = out->write(bytes.begin(), bytes.size());
  return written.attach(kj::mv(out), kj::mv(bytes));
}

kj::Promise<void> EndpointErrors::handleClientProtocolError(kj::HttpHeaders::ProtocolError error,
                                                            kj::HttpService::Response& response) {
  ++state_.metrics.answers[{kOther, error.statusCode}];
  kj::HttpHeaders headers(state_.table);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, kJson);
  const std::string text = render_error(
      error_of(error.statusCode, std::string(error.description.begin(), error.description.size())));
  auto bytes = kj::heapString(text.data(), text.size());
  auto out = response.send(error.statusCode, error.statusMessage, headers, bytes.size());
  auto written = out->write(bytes.begin(), bytes.size());
  return written.attach(kj::mv(out), kj::mv(bytes));
}

kj::Promise<void> EndpointErrors::handleApplicationError(
    kj::Exception exception, kj::Maybe<kj::HttpService::Response&> response) {
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return kj::READY_NOW;
  KJ_IF_MAYBE (to, response) {
    kj::HttpHeaders::ProtocolError error{500, "Internal Server Error",
                                         "the server failed on this request", nullptr};
    return handleClientProtocolError(kj::mv(error), *to);
  }
  return kj::READY_NOW;
}

}  // namespace redecode
