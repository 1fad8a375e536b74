// The engine behind the endpoint: texts, seeds, log probabilities, cancels, and the trace of it
// all, which replays to the same tokens.
#include "cli/serve_engine.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cli/content_hashes.h"
#include "engine/model/factory.h"
#include "replayer/replay.h"
#include "tests/http/endpoint_net.h"
#include "traces/error.h"

namespace redecode::http_test {
namespace {

constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";

ServeEngineOptions small_engine() {
  ServeEngineOptions options;
  options.model = "llama-small";
  SettingsRequest settings;
  settings.max_batch_rows = 16;
  settings.page_count = 128;
  options.batcher = batcher_options(default_settings(options.model, settings));
  return options;
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "redecode-serve-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Tokens of each request, in order.
std::map<RequestId, std::vector<int32_t>> tokens_of(const std::vector<StepOutput>& outputs) {
  std::map<RequestId, std::vector<int32_t>> out;
  for (const StepOutput& step : outputs)
    for (const RowOutput& row : step.rows) out[row.request].push_back(row.token);
  return out;
}

std::string text_of(uint16_t port, const std::string& body) {
  const Reply reply = post(port, kCompletions, body);
  INFO(reply.body);
  CHECK(reply.status == 200);
  return at(reply.body, "choices.0.text");
}

}  // namespace

TEST_CASE("Serve: equal seeds give equal texts, streamed or not, alone or in company") {
  ServeEngine engine(small_engine());
  Served served(engine);
  const std::string ask = R"({"prompt":"once upon","max_tokens":24,"seed":11)";
  const std::string alone = text_of(served.port(), ask + "}");
  CHECK_FALSE(alone.empty());
  CHECK(text_of(served.port(), ask + "}") == alone);
  CHECK(text_of(served.port(), R"({"prompt":"once upon","max_tokens":24,"seed":12})") != alone);
  const Reply stream = post(served.port(), kCompletions, ask + R"(,"stream":true})");
  CHECK(streamed_text(stream.body, 0, false) == alone);

  const Reply company = post(served.port(), kCompletions, ask + R"(,"n":6})");
  CHECK(at(company.body, "choices.0.text") == alone);
  std::set<std::string> texts;
  for (int i = 0; i < 6; ++i)
    texts.insert(at(company.body, "choices." + std::to_string(i) + ".text"));
  CHECK(texts.size() == 6);

  const std::string greedy = R"({"prompt":"once upon","max_tokens":8,"temperature":0)";
  CHECK(text_of(served.port(), greedy + "}") == text_of(served.port(), greedy + R"(,"seed":9})"));
  const std::string first = text_of(served.port(), R"({"prompt":"once upon","max_tokens":24})");
  CHECK(text_of(served.port(), R"({"prompt":"once upon","max_tokens":24})") != first);
}

TEST_CASE("Serve: log probabilities are at most 0, descend, sum to at most 1, and agree") {
  ServeEngine engine(small_engine());
  Served served(engine);
  const Reply reply = post(served.port(), kChat,
                           R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":12,)"
                           R"("seed":3,"logprobs":true,"top_logprobs":20})");
  REQUIRE(reply.status == 200);
  const auto number = [&](const std::string& path) { return std::stod(at(reply.body, path)); };
  for (int token = 0; token < 12; ++token) {
    const std::string here = "choices.0.logprobs.content." + std::to_string(token);
    const double own = number(here + ".logprob");
    double sum = 0, before = 0;
    bool named = false;
    for (int k = 0; k < 20; ++k) {
      const std::string top = here + ".top_logprobs." + std::to_string(k);
      const double logprob = number(top + ".logprob");
      CHECK(logprob <= before);
      before = logprob;
      sum += std::exp(logprob);
      if (at(reply.body, top + ".bytes") == at(reply.body, here + ".bytes") && logprob == own)
        named = true;
    }
    CHECK(sum <= 1.0001);
    CHECK(sum > 0.05);
    CHECK(own < 0);
    CHECK((named || own <= before));
  }
}

TEST_CASE("Serve: the trace replays to the tokens that were served") {
  const Folder folder;
  ServeEngineOptions options = small_engine();
  options.record = folder.file("t.rdt");
  ServeEngine engine(options);
  std::vector<std::thread> clients;
  {
    Served served(engine);
    for (int client = 0; client < 6; ++client)
      clients.emplace_back([&, client] {
        for (int i = 0; i < 4; ++i)
          post(served.port(), kCompletions,
               R"({"prompt":"client )" + std::to_string(client % 3) +
                   R"( asks something long enough for a page","max_tokens":20,"stream":true,)" +
                   R"("stop":[" "],"seed":)" + std::to_string(i) + "}");
      });
    Socket leaver = Socket::connect(served.port());
    leaver.send(request_text("POST", kCompletions,
                             R"({"prompt":"x","max_tokens":1000,"ignore_eos":true,"n":32})",
                             kJsonBody));
    CHECK(eventually([&] { return engine.metrics().preemptions > 0; }));
    leaver.close();
    for (std::thread& client : clients) client.join();
    CHECK(eventually([&] { return engine.metrics().running == 0; }));
    const BackendMetrics metrics = engine.metrics();
    CHECK(metrics.ends[static_cast<size_t>(RequestEnd::cancelled)] >= 1);
    CHECK(metrics.submitted == 24 + 32);
    CHECK(metrics.recording);
  }
  engine.stop();
  CHECK(engine.metrics().steps_dropped == 0);
  const Trace trace = load_trace(folder.file("t.rdt"));
  CHECK(trace.end == FileEnd::clean);
  CHECK(trace.digest == engine.trace_digest());
  CHECK(trace.header.started_unix_us > 0);
  CHECK_FALSE(trace.header.mode.full_logits);
  uint64_t time_us = 0;
  std::map<RequestId, int> alive;
  for (const Step& step : trace.steps) {
    CHECK(step.time_us > time_us);
    time_us = step.time_us;
    for (const Arrival& arrival : step.arrivals) ++alive[arrival.request];
    for (const Departure& departure : step.departures) --alive[departure.request];
  }
  for (const auto& [request, balance] : alive) CHECK(balance == 0);
  std::vector<StepOutput> outputs;
  ReplayOptions replay_options;
  replay_options.inspect = false;
  replay_options.output = [&](const StepOutput& output) { outputs.push_back(output); };
  replay(trace, replay_options);
  CHECK(tokens_of(outputs) == tokens_of(trace.outputs));
  std::vector<StepOutput> recorded = trace.outputs;
  recorded.resize(outputs.size());  // the last step has departures only
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(outputs[i].rows == recorded[i].rows);
}

TEST_CASE("Serve: an engine that stops ends its jobs, and takes no more") {
  ServeEngine engine(small_engine());
  TextJob job;
  job.prompt = engine.encode("x");
  job.max_tokens = 900;
  const auto id = engine.submit(job);
  REQUIRE(id);
  engine.stop();
  std::vector<BackendEvent> events;
  engine.take_events(events);
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().job == *id);
  CHECK(events.back().end == RequestEnd::cancelled);
  CHECK_FALSE(engine.submit(job));
}

TEST_CASE("Serve: a full inbox takes no more") {
  ServeEngineOptions options = small_engine();
  options.inbox_jobs = 0;
  ServeEngine engine(options);
  Served served(engine);
  CHECK(post(served.port(), kCompletions, R"({"prompt":"a"})").status == 429);
}

TEST_CASE("Serve: the whole context can be asked for, and not one token more") {
  ServeEngineOptions options = small_engine();
  options.batcher.page_count = 5;  // 64 slots
  ServeEngine engine(options);
  Served served(engine);
  CHECK(engine.info().context_tokens == 65);
  const std::string body = R"({"prompt":"abcd","ignore_eos":true,"max_tokens":)";
  const Reply most = post(served.port(), kCompletions, body + "60}");
  CHECK(most.status == 200);
  CHECK(at(most.body, "usage.completion_tokens") == "60");
  CHECK(at(most.body, "usage.prompt_tokens") == "5");  // with the token that begins a prompt
  CHECK(post(served.port(), kCompletions, body + "61}").status == 400);
}

TEST_CASE("Serve: an existing trace is replaced only when asked") {
  const Folder folder;
  ServeEngineOptions options = small_engine();
  options.record = folder.file("t.rdt");
  { ServeEngine first(options); }
  CHECK_THROWS_AS(ServeEngine(options), Error);
  options.force = true;
  ServeEngine again(options);
  CHECK_NOTHROW(again.stop());
}

TEST_CASE("Serve: what a recorder that may drop leaves out is what its trace says") {
  const Folder folder;
  ServeEngineOptions options = small_engine();
  options.record = folder.file("t.rdt");
  options.tap.ring_records = 2;
  options.tap.when_full = WhenFull::drop;
  ServeEngine engine(options);
  {
    Served served(engine);
    for (int i = 0; i < 8; ++i)
      CHECK(post(served.port(), kCompletions,
                 R"({"prompt":"once","max_tokens":60,"ignore_eos":true})")
                .status == 200);
  }
  engine.stop();
  const BackendMetrics metrics = engine.metrics();
  CHECK(metrics.steps_dropped > 0);  // a ring of one step, and a writer that sleeps in between
  const Trace trace = load_trace(options.record);
  uint64_t lost = 0;
  for (const Gap& gap : trace.gaps) {
    CHECK(gap.causes == kGapRingFull);
    CHECK(gap.bytes > 0);
    lost += gap.count;
  }
  CHECK(lost == metrics.steps_dropped);
  CHECK(trace.steps.size() == metrics.steps_recorded);
  // One step may be of departures only: the engine does not run it.
  CHECK(trace.steps.size() + lost >= metrics.steps);
  CHECK(trace.steps.size() + lost <= metrics.steps + 1);
}

TEST_CASE("Serve: weights, tokenizer and configuration are named by their content") {
  const auto header_of = [](const std::string& model) {
    const Folder folder;
    ServeEngineOptions options = small_engine();
    options.model = model;
    options.record = folder.file("t.rdt");
    ServeEngine engine(options);
    engine.stop();
    const TraceHeader header = TraceReader(options.record).header();
    CHECK(header == engine.header());
    return header.model;
  };
  const ModelIdentity one = header_of("llama-small"), same = header_of("llama-small:seed=1"),
                      other = header_of("llama-small:seed=2");
  for (const std::string* sha : {&one.weights_sha256, &one.tokenizer_sha256, &one.config_sha256}) {
    CHECK(sha->size() == 64);
    CHECK(sha->find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(one.weights_sha256 == same.weights_sha256);  // equal content, asked for by another name
  CHECK(one.weights_sha256 != other.weights_sha256);
  CHECK(one.config_sha256 == other.config_sha256);
  CHECK(one.tokenizer_sha256 == other.tokenizer_sha256);
  CHECK(one.weights_sha256 != one.config_sha256);
}

TEST_CASE("Content names: files go by their bytes, and what is not there has no name") {
  const Folder folder;
  const auto put = [](const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  };
  ModelIdentity identity;
  identity.vocab = 512;
  put(folder.file("m.bin"), "abc");
  const std::string model = "llama2c:" + folder.file("m.bin").string();
  add_content_hashes(model, {}, identity);
  CHECK(identity.weights_sha256 ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(identity.tokenizer_sha256.empty());
  put(folder.file("tok512.bin"), "");
  add_content_hashes(model, {}, identity);
  CHECK(identity.tokenizer_sha256 ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_THROWS_AS(add_content_hashes(model, folder.file("none").string(), identity), Error);
}

TEST_CASE("Serve: names of the model, and the chat template") {
  ServeEngineOptions options = small_engine();
  options.served_name = "mine";
  ServeEngine engine(options);
  CHECK(engine.info().models.front() == "mine");
  CHECK(engine.info().models.at(1) == "llama-small");
  CHECK(engine.chat_prompt({{"system", "be"}, {"user", "hi"}}) ==
        "<|system|>\nbe\n<|user|>\nhi\n<|assistant|>\n");
}

}  // namespace redecode::http_test
