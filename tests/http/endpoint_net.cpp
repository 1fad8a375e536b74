#include "tests/http/endpoint_net.h"

#include <sys/eventfd.h>

#include <charconv>

#include "recorder/http/json_read.h"
#include "traces/error.h"

namespace redecode::http_test {
namespace {

// Takes whole chunks off `raw`; true once the last one has come.
bool take_chunks(std::string& raw, std::string& body) {
  for (;;) {
    const size_t line = raw.find("\r\n");
    if (line == std::string::npos) return false;
    size_t length = 0;
    std::from_chars(raw.data(), raw.data() + line, length, 16);
    if (raw.size() < line + 2 + length + 2) return false;
    body.append(raw, line + 2, length);
    raw.erase(0, line + 2 + length + 2);
    if (length == 0) return true;
  }
}

size_t content_length(const std::string& head) {
  const size_t at = head.find("Content-Length: ");
  size_t length = 0;
  if (at != std::string::npos)
    std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
  return length;
}

std::optional<JsonValue> member(JsonValue value, const std::string& name) {
  if (value.isArray()) {
    size_t index = 0;
    std::from_chars(name.data(), name.data() + name.size(), index);
    if (index >= value.getArray().size()) return std::nullopt;
    return value.getArray()[static_cast<unsigned>(index)];
  }
  if (!value.isObject()) return std::nullopt;
  for (const auto field : value.getObject())
    if (json_text(field.getName()) == name) return field.getValue();
  return std::nullopt;
}

}  // namespace

std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const Headers& headers) {
  std::string out = method + " " + path + " HTTP/1.1\r\nHost: test\r\n";
  for (const std::string& header : headers) out += header + "\r\n";
  if (method == "POST" || !body.empty())
    out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return out + "\r\n" + body;
}

Reply read_reply(Socket& socket, const std::function<bool(const std::string& body)>& enough) {
  Reply reply;
  std::string raw;
  size_t end = std::string::npos;
  while ((end = raw.find("\r\n\r\n")) == std::string::npos) {
    const std::string more = socket.receive();
    if (more.empty()) return reply;
    raw += more;
  }
  reply.head = raw.substr(0, end + 2);
  raw.erase(0, end + 4);
  std::from_chars(reply.head.data() + 9, reply.head.data() + 12, reply.status);
  const bool chunked = reply.head.find("Transfer-Encoding: chunked") != std::string::npos;
  const size_t length = content_length(reply.head);
  for (;;) {
    if (chunked) {
      reply.whole = take_chunks(raw, reply.body);
    } else {
      reply.body += std::exchange(raw, {});
      reply.whole = reply.body.size() >= length;
    }
    if (reply.whole || (enough && enough(reply.body))) return reply;
    const std::string more = socket.receive();
    if (more.empty()) return reply;
    raw += more;
  }
}

Reply call(uint16_t port, const std::string& method, const std::string& path,
           const std::string& body, const Headers& headers) {
  Socket socket = Socket::connect(port);
  socket.send(request_text(method, path, body, headers));
  if (method == "HEAD") {
    Reply reply;
    reply.head = socket.receive();
    if (reply.head.size() > 12)
      std::from_chars(reply.head.data() + 9, reply.head.data() + 12, reply.status);
    return reply;
  }
  return read_reply(socket);
}

Reply post(uint16_t port, const std::string& path, const std::string& body) {
  return call(port, "POST", path, body, kJsonBody);
}

std::string at(const std::string& json, const std::string& path) {
  try {
    JsonText text(json);
    JsonValue value = text.root();
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const auto next = member(value, path.substr(begin, end - begin));
      if (!next) return {};
      value = *next;
      begin = end + 1;
    }
    if (value.isString()) return json_text(value.getString());
    JsonWriter out;
    write_json_value(value, out);
    return out.take();
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = body.find("\n\n", begin);
    if (end == std::string::npos) break;
    if (body.compare(begin, 6, "data: ") == 0)
      out.push_back(body.substr(begin + 6, end - begin - 6));
    begin = end + 2;
  }
  return out;
}

std::string streamed_text(const std::string& body, int choice, bool chat) {
  std::string out;
  for (const std::string& event : events_of(body))
    if (at(event, "choices.0.index") == std::to_string(choice))
      out += at(event, chat ? "choices.0.delta.content" : "choices.0.text");
  return out;
}

bool eventually(const std::function<bool()>& is_so) {
  for (int i = 0; i < 1000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_so();
}

ScriptedBackend::ScriptedBackend() : event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  info_.models = {"scripted", "scripted:alias"};
  info_.fingerprint = "fp";
  info_.context_tokens = 64;
  info_.vocab = 512;
  info_.token_bytes = 1;
  info_.end_token = 511;
}

ScriptedBackend::~ScriptedBackend() { ::close(event_fd_); }

std::vector<int32_t> ScriptedBackend::encode(std::string_view text) const {
  std::vector<int32_t> out;
  for (const char c : text) out.push_back(static_cast<uint8_t>(c));
  return out;
}

std::string ScriptedBackend::chat_prompt(const std::vector<ChatMessage>& messages) const {
  std::string out;
  for (const ChatMessage& message : messages) out += message.role[0] + message.content;
  return out;
}

std::string ScriptedBackend::decode(int32_t, int32_t token) const {
  const auto index = static_cast<size_t>(token);
  return index < words.size() ? words[index] : std::string();
}

std::optional<JobId> ScriptedBackend::submit(TextJob job) {
  JobId id = 0;
  {
    const std::lock_guard lock(guard_);
    if (jobs_.size() >= most_jobs) return std::nullopt;
    id = static_cast<JobId>(jobs_.size());
    jobs_.push_back(job);
  }
  if (script) emit(script(id, job));
  return id;
}

void ScriptedBackend::cancel(JobId job) {
  const std::lock_guard lock(guard_);
  cancelled_.push_back(job);
}

void ScriptedBackend::take_events(std::vector<BackendEvent>& out) {
  uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_fd_, &count, sizeof count);
  const std::lock_guard lock(guard_);
  out.insert(out.end(), outbox_.begin(), outbox_.end());
  outbox_.clear();
}

void ScriptedBackend::emit(std::vector<BackendEvent> events) {
  {
    const std::lock_guard lock(guard_);
    outbox_.insert(outbox_.end(), events.begin(), events.end());
  }
  const uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(event_fd_, &one, sizeof one);
}

std::vector<TextJob> ScriptedBackend::jobs() const {
  const std::lock_guard lock(guard_);
  return jobs_;
}

std::vector<JobId> ScriptedBackend::cancelled() const {
  const std::lock_guard lock(guard_);
  return cancelled_;
}

BackendEvent token_event(JobId job, int32_t token, std::optional<RequestEnd> end) {
  BackendEvent event;
  event.job = job;
  event.has_token = true;
  event.token = {token, -0.5f};
  event.end = end;
  return event;
}

ScriptedBackend::Script say_words(size_t count, RequestEnd end) {
  return [count, end](JobId job, const TextJob&) {
    std::vector<BackendEvent> events;
    for (size_t i = 0; i < count; ++i)
      events.push_back(token_event(job, static_cast<int32_t>(i),
                                   i + 1 == count ? std::optional(end) : std::nullopt));
    return events;
  };
}

Served::Served(TextBackend& backend, EndpointOptions options) {
  thread_ = std::thread([this, &backend, options = std::move(options)] {
    summary_ = run_endpoint(
        options, backend, [this](uint16_t port) { port_ = port; }, [this] { return stop_.load(); });
    ended_ = true;
  });
  eventually([&] { return port_ != 0; });
}

EndpointSummary Served::finish() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return summary_;
}

}  // namespace redecode::http_test
