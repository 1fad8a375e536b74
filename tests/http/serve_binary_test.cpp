// The real binary: signals, exit codes and the trace that is left.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "replayer/replay.h"
#include "tests/http/endpoint_net.h"

extern char** environ;

namespace redecode::http_test {
namespace {

class Binary {
 public:
  // `wrapper`: words in front of the command line, the first a program's path.
  explicit Binary(std::vector<std::string> arguments, std::vector<std::string> wrapper = {}) {
    make_folder();
    const std::string binary = std::string(REDECODE_BINARY_DIR) + "/bin/redecode";
    arguments.insert(arguments.begin(), {binary, "serve", "--model", "llama-small", "--json",
                                         "--port-file", file("port"), "--record", file("t.rdt")});
    arguments.insert(arguments.begin(), wrapper.begin(), wrapper.end());
    start(std::move(arguments));
  }
  // Any command line, the program's path first.
  static std::unique_ptr<Binary> of(std::vector<std::string> words) {
    std::unique_ptr<Binary> out(new Binary);
    out->make_folder();
    out->start(std::move(words));
    return out;
  }
  Binary(const Binary&) = delete;
  Binary& operator=(const Binary&) = delete;
  ~Binary() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    std::filesystem::remove_all(folder_);
  }
  std::string file(const char* name) const { return folder_ + "/" + name; }
  uint16_t port() const {
    if (!eventually([&] { return std::filesystem::exists(file("port")); })) return 0;
    uint16_t port = 0;
    std::ifstream(file("port")) >> port;
    return port;
  }
  void signal(int number) const { kill(pid_, number); }
  // "exit 0", "signal 15".
  std::string wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                             : "signal " + std::to_string(WTERMSIG(status));
  }
  std::string output() const { return text("out"); }
  std::string text(const char* name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  Binary() = default;
  void make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "redecode-serve-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void start(std::vector<std::string> arguments) {
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int stream : {1, 2})
      posix_spawn_file_actions_addopen(&actions, stream, file(stream == 1 ? "out" : "err").c_str(),
                                       O_CREAT | O_WRONLY, 0600);
    posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
  }

  std::string folder_;
  pid_t pid_ = -1;
};

constexpr const char* kLongStream =
    R"({"prompt":"go","max_tokens":1000,"stream":true,"ignore_eos":true,"seed":1})";

}  // namespace

TEST_CASE("Serve binary: SIGTERM mid-stream lets the stream end, and the trace is whole",
          "[slow]") {
  Binary binary({"--drain-timeout-s", "60"});
  const uint16_t port = binary.port();
  REQUIRE(port != 0);
  Socket client = Socket::connect(port);
  client.send(request_text("POST", "/v1/completions", kLongStream, kJsonBody));
  const Reply start =
      read_reply(client, [](const std::string& body) { return body.size() > 2000; });
  CHECK(start.status == 200);
  CHECK_FALSE(start.whole);
  binary.signal(SIGTERM);
  std::string rest = start.body;
  for (std::string more = client.receive(); !more.empty(); more = client.receive()) rest += more;
  CHECK(rest.find("[DONE]") != std::string::npos);
  CHECK(binary.wait() == "exit 0");
  CHECK(at(binary.output(), "choices") == "1");
  CHECK(at(binary.output(), "cut_by_drain") == "0");

  const Trace trace = load_trace(binary.file("t.rdt"));
  CHECK(trace.end == FileEnd::clean);
  uint64_t tokens = 0;
  for (const StepOutput& output : trace.outputs) tokens += output.rows.size();
  CHECK(tokens == 1000);
  ReplayOptions options;
  options.inspect = false;
  size_t step = 0;
  bool same = true;
  options.output = [&](const StepOutput& output) {
    same = same && (step >= trace.outputs.size() || output.rows == trace.outputs[step].rows);
    ++step;
  };
  replay(trace, options);
  CHECK(same);
  CHECK(step == trace.steps.size());
}

TEST_CASE("Serve binary: the end of the drain cuts the stream, the trace is whole", "[slow]") {
  Binary binary({"--drain-timeout-s", "0"});
  const uint16_t port = binary.port();
  REQUIRE(port != 0);
  Socket client = Socket::connect(port);
  client.send(request_text("POST", "/v1/completions", kLongStream, kJsonBody));
  read_reply(client, [](const std::string& body) { return body.size() > 1000; });
  binary.signal(SIGINT);
  CHECK(binary.wait() == "exit 0");
  CHECK(at(binary.output(), "cut_by_drain") == "1");
  const Trace trace = load_trace(binary.file("t.rdt"));
  CHECK(trace.end == FileEnd::clean);
  REQUIRE_FALSE(trace.steps.empty());
  REQUIRE(trace.steps.back().departures.size() == 1);
  CHECK(trace.steps.back().departures[0].reason == DepartureReason::cancelled);
}

TEST_CASE("Serve binary: a second signal ends it at once", "[slow]") {
  Binary binary({"--drain-timeout-s", "600"});
  const uint16_t port = binary.port();
  REQUIRE(port != 0);
  Socket held = Socket::connect(port);
  held.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{");
  REQUIRE(eventually([&] {
    return call(port, "GET", "/metrics").body.find("requests_active 1") != std::string::npos;
  }));
  binary.signal(SIGTERM);
  CHECK(eventually([&] { return call(port, "GET", "/health").status == 503; }));
  binary.signal(SIGTERM);
  CHECK(binary.wait() == "signal 15");
}

TEST_CASE("Serve binary: a trace that cannot grow fails the requests and ends it with 4",
          "[slow]") {
  // Files of at most 8 KiB; a write beyond that fails as on a full disk.
  Binary binary({}, {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"});
  const uint16_t port = binary.port();
  REQUIRE(port != 0);
  const Reply reply =
      post(port, "/v1/completions",
           R"({"prompt":"a","max_tokens":1000,"n":8,"ignore_eos":true,"temperature":1})");
  CHECK(reply.status == 500);
  CHECK(binary.wait() == "exit 4");
  CHECK(binary.text("err").find("cannot write") != std::string::npos);
}

TEST_CASE("Serve binary: its trace replays to the outputs that were recorded", "[slow]") {
  Binary binary({"--drain-timeout-s", "60"});
  const uint16_t port = binary.port();
  REQUIRE(port != 0);
  CHECK(post(port, "/v1/completions",
             R"({"prompt":"a","max_tokens":30,"n":3,"seed":5,"temperature":1})")
            .status == 200);
  binary.signal(SIGTERM);
  CHECK(binary.wait() == "exit 0");
  const std::string program = std::string(REDECODE_BINARY_DIR) + "/bin/redecode";
  const auto check = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {program, "replay", binary.file("t.rdt"), "--no-check",
                               "--check-recorded", "--json"});
    return Binary::of(std::move(more));
  };
  const auto same = check({});
  CHECK(same->wait() == "exit 0");
  CHECK(at(same->output(), "recorded.differing") == "0");
  CHECK(at(same->output(), "recorded.outputs") != "0");
  const auto spoilt = check({"--inject", "baked-position", "--capture", "graph"});
  const std::string end = spoilt->wait();
  INFO(spoilt->text("err"));
  CHECK(end == "exit 1");
}

TEST_CASE("Record binary: a proxy refuses what it would ignore", "[slow]") {
  const auto proxy = [](std::vector<std::string> more) {
    more.insert(more.begin(),
                {std::string(REDECODE_BINARY_DIR) + "/bin/redecode", "record", "--proxy",
                 "--upstream", "http://127.0.0.1:9", "-o", "/nowhere/proxy.rdt"});
    return Binary::of(std::move(more));
  };
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--workload", "agent"},
                                             {"--sessions", "3"},
                                             {"--seed", "1"},
                                             {"--model", "llama-small"},
                                             {"--max-batch", "8"},
                                             {"--buckets", "1,2"},
                                             {"--streams", "multi"},
                                             {"--inject", "early-free"}}) {
    CAPTURE(more[0]);
    const auto binary = proxy(more);
    CHECK(binary->wait() == "exit 2");
    CHECK(binary->text("err").find(more[0]) != std::string::npos);
    CHECK(binary->text("err").find("beside --proxy") != std::string::npos);
  }
  CHECK(proxy({})->wait() == "exit 3");  // no such folder: the flags are fine
}

TEST_CASE("Serve binary: what cannot be served is refused before it listens", "[slow]") {
  CHECK(Binary({"--host", "0.0.0.0"}).wait() == "exit 2");
  CHECK(Binary({"--token-file", "nowhere"}).wait() == "exit 3");
  CHECK(Binary({"--inject", "nothing"}).wait() == "exit 2");
  CHECK(Binary({"--tokenizer", "tok512.bin"}).wait() == "exit 2");
}

}  // namespace redecode::http_test
