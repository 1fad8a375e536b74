// recorder/http/endpoint_service.h - the HTTP service of one connection: paths, tokens, bodies and
// answers.
#pragma once
#include <kj/compat/http.h>

#include <cstdint>
#include <optional>
#include <string>

#include "recorder/http/endpoint_state.h"

namespace redecode {

class EndpointService final : public kj::HttpService {
 public:
  // `fd`: the connection's, to see a client leave; -1: unknown. `state` outlives the service.
  EndpointService(EndpointState& state, int fd) : state_(state), fd_(fd) {}

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;

 private:
  struct Body {
    std::string bytes;
    std::optional<ApiError> error;
  };
  std::optional<ApiError> refusal_of_post(const kj::HttpHeaders& headers) const;
  bool authorized(const kj::HttpHeaders& headers) const;
  kj::Promise<void> get(const std::string& path, Response& response);
  kj::Promise<void> complete(bool chat, kj::AsyncInputStream& body, Response& response);
  kj::Promise<void> answer(ActiveRequest& active, Body body, bool chat, Response& response);
  void begin(ActiveRequest& active, Body body, bool chat);
  kj::Promise<void> stream(ActiveRequest& active, const std::string& path, Response& response);
  kj::Promise<Body> read_body(ActiveRequest& active, kj::AsyncInputStream& body);
  kj::Promise<Body> read_more(ActiveRequest& active, kj::AsyncInputStream& body,
                              std::string so_far);
  kj::Promise<void> send_error(const std::string& path, const ApiError& error, Response& response);
  kj::Promise<void> send(const std::string& path, unsigned status, const char* type,
                         const std::string& text, kj::HttpHeaders& headers, Response& response);
  kj::Promise<void> send(const std::string& path, const char* type, const std::string& text,
                         Response& response);

  EndpointState& state_;
  int fd_;
};

// Errors of the protocol itself, as JSON.
class EndpointErrors final : public kj::HttpServerErrorHandler {
 public:
  explicit EndpointErrors(EndpointState& state) : state_(state) {}
  kj::Promise<void> handleClientProtocolError(kj::HttpHeaders::ProtocolError error,
                                              kj::HttpService::Response& response) override;
  kj::Promise<void> handleApplicationError(kj::Exception exception,
                                           kj::Maybe<kj::HttpService::Response&> response) override;

 private:
  EndpointState& state_;
};

ApiError draining_error();

}  // namespace redecode
