// tests/http/endpoint_net.h - an HTTP client, JSON paths, a scripted backend and an endpoint on a
// thread, for the tests of the endpoint.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "recorder/http/endpoint.h"
#include "recorder/http/text_backend.h"
#include "tests/http/proxy_net.h"

namespace redecode::http_test {

struct Reply {
  int status = 0;      // 0: no answer came
  std::string head;    // status line and headers
  std::string body;    // without chunks
  bool whole = false;  // the body has come to its end
};

using Headers = std::vector<std::string>;  // "Name: value"

inline const Headers kJsonBody = {"Content-Type: application/json"};

std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const Headers& headers = {});
// Reads one answer; `enough`, unless empty, ends the reading early.
Reply read_reply(Socket& socket, const std::function<bool(const std::string& body)>& enough = {});
// One request on a connection of its own.
Reply call(uint16_t port, const std::string& method, const std::string& path,
           const std::string& body = {}, const Headers& headers = {});
Reply post(uint16_t port, const std::string& path, const std::string& body);

// The value at "choices.0.text" in `json`, strings without quotes, others as JSON; empty: none.
std::string at(const std::string& json, const std::string& path);
// Data of each server-sent event.
std::vector<std::string> events_of(const std::string& body);
// The text of one choice of a streamed answer.
std::string streamed_text(const std::string& body, int choice, bool chat);

// Waits up to ten seconds.
bool eventually(const std::function<bool()>& is_so);

// Jobs as they come, events as the test says. Token n stands for words[n].
class ScriptedBackend final : public TextBackend {
 public:
  ScriptedBackend();
  ~ScriptedBackend() override;
  // What each job gets at once; empty: what emit gives.
  using Script = std::function<std::vector<BackendEvent>(JobId, const TextJob&)>;

  const BackendInfo& info() const override { return info_; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string chat_prompt(const std::vector<ChatMessage>& messages) const override;
  std::string decode(int32_t previous, int32_t token) const override;
  std::optional<JobId> submit(TextJob job) override;
  void cancel(JobId job) override;
  int event_fd() const override { return event_fd_; }
  void take_events(std::vector<BackendEvent>& out) override;
  BackendMetrics metrics() const override { return {}; }
  bool failed() const override { return failed_; }

  void emit(std::vector<BackendEvent> events);
  void fail() { failed_ = true; }
  std::vector<TextJob> jobs() const;
  std::vector<JobId> cancelled() const;

  BackendInfo info_;
  std::vector<std::string> words;  // set before the endpoint starts
  Script script;
  uint32_t most_jobs = 1000;

 private:
  mutable std::mutex guard_;
  std::vector<TextJob> jobs_;
  std::vector<JobId> cancelled_;
  std::vector<BackendEvent> outbox_;
  std::atomic<bool> failed_{false};
  int event_fd_ = -1;
};

BackendEvent token_event(JobId job, int32_t token, std::optional<RequestEnd> end = {});
// Tokens 0, 1, ... of the backend's words, the last one with `end`.
ScriptedBackend::Script say_words(size_t count, RequestEnd end = RequestEnd::length);

// run_endpoint on a thread.
class Served {
 public:
  explicit Served(TextBackend& backend, EndpointOptions options = {});
  ~Served() { finish(); }
  uint16_t port() const { return port_; }
  void begin_drain() { stop_ = true; }
  bool ended() const { return ended_; }
  EndpointSummary finish();  // drains and joins

 private:
  std::atomic<bool> stop_{false}, ended_{false};
  std::atomic<uint16_t> port_{0};
  EndpointSummary summary_;
  std::thread thread_;
};

}  // namespace redecode::http_test
