#include "cli/serve.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "cli/live_session.h"
#include "cli/mode_options.h"
#include "cli/output.h"
#include "cli/serve_engine.h"
#include "cli/whole_number.h"
#include "recorder/http/endpoint.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr const char* kExample =
    "redecode serve --model llama-small --port 8000 --record live.rdt\n"
    "  redecode serve --model dsv4-small --streams multi --capture graph --port 8000\n"
    "  redecode serve --host 0.0.0.0 --token-file token.txt --model llama-small";
constexpr size_t kLeastTokenBytes = 16, kMostTokenBytes = 4096;

struct ServeOptions {
  std::string model = "dsv4-small", name, tokenizer, record, record_policy = "block";
  std::string token_file, port_file;
  bool force = false;
  int threads = 1;
  SettingsRequest settings;
  std::optional<uint32_t> chunk_rows;
  uint32_t ring_records = 1024;
  uint32_t request_timeout_s = 600, drain_timeout_s = 30;
  uint64_t body_limit_bytes = RequestLimits{}.body_bytes;
  EndpointOptions endpoint;
  ModeOptions mode;
};

[[noreturn]] void usage(const std::string& message, const std::string& context) {
  throw Error(ErrorCode::usage, message, context);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

std::string read_token(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::missing, "cannot read the token", path);
  std::string token(kMostTokenBytes + 1, '\0');
  in.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(in.gcount()));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.size() < kLeastTokenBytes || token.size() > kMostTokenBytes)
    usage("a token has " + std::to_string(kLeastTokenBytes) + " to " +
              std::to_string(kMostTokenBytes) + " bytes",
          path);
  for (const char c : token)
    if (c <= ' ' || c > '~') usage("a token is one line of printable characters, no spaces", path);
  return token;
}

EndpointOptions endpoint_options(const ServeOptions& o) {
  EndpointOptions out = o.endpoint;
  out.request.body_bytes = o.body_limit_bytes;
  out.request_timeout_ms = o.request_timeout_s * 1000;
  out.drain_timeout_ms = o.drain_timeout_s * 1000;
  if (!o.token_file.empty()) out.token = read_token(o.token_file);
  if (out.token.empty() && !is_loopback(out.host))
    usage("an address that others reach needs a token; give --token-file", "--host " + out.host);
  return out;
}

ServeEngineOptions engine_options(const ServeOptions& o) {
  ServeEngineOptions out;
  out.model = o.model;
  out.served_name = o.name;
  out.tokenizer = o.tokenizer;
  out.batcher = live_options(o.model, o.settings, o.chunk_rows.value_or(0));
  out.mode = o.mode.resolve();
  out.threads = o.threads;
  out.environment = environment_entries();
  out.record = o.record;
  out.force = o.force;
  out.tap.ring_records = o.ring_records;
  out.tap.flush_every_steps = 256;
  out.tap.when_full = o.record_policy == "drop" ? WhenFull::drop : WhenFull::block;
  return out;
}

// Whole or not at all: who waits for the file reads a whole number.
void write_port(const std::string& path, uint16_t port) {
  const std::string draft = path + ".part";
  {
    std::ofstream out(draft, std::ios::trunc);
    out << port << "\n";
    if (!out.flush()) throw Error(ErrorCode::environment, "cannot write the port", path);
  }
  std::filesystem::rename(draft, path);
}

void say_listening(const CommandContext& context, const ServeOptions& o, const BackendInfo& info,
                   uint16_t port) {
  const std::string line = "serving " + info.models.front() + " on http://" + o.endpoint.host +
                           ":" + std::to_string(port) + "\n";
  std::FILE* to = context.json ? stderr : stdout;
  std::fputs(line.c_str(), to);
  std::fflush(to);
  if (!o.port_file.empty()) write_port(o.port_file, port);
}

std::string summary_text(const ServeOptions& o, const EndpointSummary& s, const BackendMetrics& m) {
  std::string out = "served " + with_thousands(s.requests) + " HTTP requests\n";
  out += labelled("completions", with_thousands(s.choices) + " choices, " +
                                     with_thousands(s.disconnects) + " given up, " +
                                     with_thousands(s.cut_by_drain) + " cut at the end");
  out += labelled("steps",
                  with_thousands(m.steps) + ", " + with_thousands(m.graph_steps) + " from a graph");
  out += labelled("tokens", with_thousands(m.output_tokens));
  if (m.recording) {
    out += labelled("trace", o.record + ", " + with_thousands(m.trace_bytes) + " bytes, " +
                                 with_thousands(m.steps_recorded) + " steps");
    if (m.steps_dropped != 0)
      out += labelled("dropped", with_thousands(m.steps_dropped) + " steps");
  }
  return out;
}

std::string summary_json(const ServeOptions& o, const EndpointSummary& s, const BackendMetrics& m,
                         Digest trace_digest) {
  JsonWriter json;
  json.begin_object();
  json.member("http_requests", s.requests).member("connections", s.connections);
  json.member("choices", s.choices).member("disconnects", s.disconnects);
  json.member("cut_by_drain", s.cut_by_drain);
  json.member("steps", m.steps).member("graph_steps", m.graph_steps);
  json.member("output_tokens", m.output_tokens).member("preemptions", m.preemptions);
  if (m.recording) {
    json.member("trace", o.record).member("trace_digest", digest_hex(trace_digest));
    json.member("bytes", m.trace_bytes).member("steps_recorded", m.steps_recorded);
    json.member("steps_dropped", m.steps_dropped);
  }
  json.end_object();
  return json.take();
}

int run_serve(const CommandContext& context, const ServeOptions& o) {
  const EndpointOptions endpoint = endpoint_options(o);
  const ServeEngineOptions options = engine_options(o);
  check_memory(options.model, engine_settings(options.batcher), options.mode);
  ServeEngine engine(options);
  const EndpointSummary summary = run_endpoint(
      endpoint, engine, [&](uint16_t port) { say_listening(context, o, engine.info(), port); },
      [&] { return context.stopped(); });
  engine.stop();
  const BackendMetrics metrics = engine.metrics();
  emit(context, summary_text(o, summary, metrics),
       summary_json(o, summary, metrics, engine.trace_digest()));
  return 0;
}

void add_http(CLI::App* command, ServeOptions& o) {
  const char* group = "HTTP";
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command->add_option(flag, value, help)->group(group)->capture_default_str();
  };
  add("--host", o.endpoint.host, "Address to listen on; another than loopback needs a token");
  add("--port", o.endpoint.port, "Port; 0: any free one");
  add("--port-file", o.port_file, "File that gets the port once it is open");
  add("--token-file", o.token_file, "File with the bearer token that clients must send");
  add("--max-waiting", o.endpoint.max_waiting, "Choices without a first token; more get 429")
      ->check(CLI::Range(1u, 65536u));
  add("--max-connections", o.endpoint.max_connections, "Connections at once")
      ->check(CLI::Range(1u, 1u << 20));
  add("--body-limit", o.body_limit_bytes, "Bytes of a request's body")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 30));
  const auto milliseconds = [&](const char* flag, uint32_t& value, const char* help) {
    add(flag, value, help)->check(CLI::Range(1u, 86'400'000u));
  };
  milliseconds("--header-timeout-ms", o.endpoint.header_timeout_ms, "To receive a request's head");
  milliseconds("--idle-timeout-ms", o.endpoint.idle_timeout_ms, "Between requests of a connection");
  milliseconds("--body-timeout-ms", o.endpoint.body_timeout_ms, "To receive a request's body");
  add("--request-timeout-s", o.request_timeout_s, "To answer a request")
      ->check(CLI::Range(1u, 86'400u));
  add("--drain-timeout-s", o.drain_timeout_s,
      "After SIGTERM, running requests may take this long to end")
      ->check(CLI::Range(0u, 86'400u));
}

void add_engine(CLI::App* command, ServeOptions& o) {
  const char* group = "Engine";
  const auto add = [&](const char* flag, auto& value, const char* help) {
    return command->add_option(flag, value, help)->group(group);
  };
  add("--model", o.model, "dsv4-small, llama-small, llama-100m or llama2c:PATH; :seed=N")
      ->capture_default_str();
  add("--name", o.name, "Name of the model in the API");
  add("--tokenizer", o.tokenizer, "Vocabulary of a llama2c model; default: tokN.bin beside it");
  add("--seed", o.endpoint.seed_key, "Of requests that give no seed")->check(whole_number());
  add("--threads", o.threads, "Of kernels; without effect on any bit")->check(CLI::Range(1, 1024));
  add("--page-size", o.settings.page_size, "Tokens a KV page");
  add("--page-count", o.settings.page_count, "KV pages, the dummy page included");
  add("--max-batch", o.settings.max_batch_rows, "Rows of a decode step");
  add("--chunk", o.chunk_rows, "Rows of a prefill step");
  add("--buckets", o.settings.buckets, "Padded sizes of decode steps, ascending: 1,2,4")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_recording(CLI::App* command, ServeOptions& o) {
  const char* group = "Recording";
  command->add_option("--record", o.record, "Trace to write (.rdt)")->group(group);
  command->add_flag("--force", o.force, "Replace an existing file")->group(group);
  command
      ->add_option("--record-policy", o.record_policy,
                   "When the recorder's ring is full: block (the engine waits) or drop (a gap)")
      ->group(group)
      ->check(CLI::IsMember({"block", "drop"}))
      ->capture_default_str();
  command->add_option("--record-ring", o.ring_records, "Records that the ring holds")
      ->group(group)
      ->check(CLI::Range(2u, 1u << 20))
      ->capture_default_str();
}

}  // namespace

void add_serve(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, context, "serve",
                                  "Serve a model over an OpenAI-compatible endpoint", kExample);
  auto options = std::make_shared<ServeOptions>();
  add_engine(command, *options);
  add_http(command, *options);
  add_recording(command, *options);
  options->mode.add_to(*command);
  on_run(command, context, [&context, options] { return run_serve(context, *options); });
}

}  // namespace redecode
