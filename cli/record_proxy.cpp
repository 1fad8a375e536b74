#include "cli/record_proxy.h"

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cli/descriptors.h"
#include "cli/output.h"
#include "recorder/http/proxy.h"
#include "replayer/engine_instance.h"
#include "traces/error.h"
#include "traces/thousands.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

class TraceSink final : public ExchangeSink {
 public:
  TraceSink(const std::string& path, const TraceHeader& header, bool force)
      : writer_(path, header, {}, force) {}
  void write(const Exchange& exchange) override {
    writer_.write(exchange);
    // What is lost when the process is killed.
    constexpr auto kMostUnwritten = std::chrono::seconds(1);
    const auto now = std::chrono::steady_clock::now();
    if (now - flushed_ < kMostUnwritten) return;
    flushed_ = now;
    writer_.flush();
  }
  uint64_t close() {
    writer_.close();
    return writer_.bytes_written();
  }

 private:
  TraceWriter writer_;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

TraceHeader header_of(const ProxyOptions& options) {
  TraceHeader header;
  header.writer = writer_name();
  header.model.family = "external";
  header.workload =
      "proxy to " + options.upstream_host + ":" + std::to_string(options.upstream_port);
  header.started_unix_us = std::chrono::duration_cast<std::chrono::microseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  return header;
}

std::string milliseconds(const DurationHistogram& times, double share) {
  return tenths(static_cast<double>(times.at(share)) * 1e-3);
}

std::string times_text(const DurationHistogram& times) {
  if (times.count() == 0) return "none";
  return "p50 " + milliseconds(times, 0.5) + " ms, p99 " + milliseconds(times, 0.99) + " ms";
}

std::string summary_text(const std::string& output, const ProxySummary& s, uint64_t bytes) {
  const ObserverCounts& counts = s.observed.counts;
  std::string out = "recorded " + output + "\n";
  out += labelled("exchanges", with_thousands(counts.recorded));
  out += labelled("not recorded", not_recorded_text(counts));
  if (counts.given_up_connections != 0)
    out += labelled("given up", with_thousands(counts.given_up_connections) +
                                    " connections: what came on them later is in no count");
  out += labelled("other requests", with_thousands(counts.other_requests));
  std::string connections = with_thousands(s.connections);
  if (s.refused_connections != 0)
    connections += ", " + with_thousands(s.refused_connections) + " answered 502";
  if (s.cut_connections != 0)
    connections += ", " + with_thousands(s.cut_connections) + " cut at the end";
  out += labelled("connections", connections);
  out += labelled("bytes passed", with_thousands(s.client_bytes) + " to the server, " +
                                      with_thousands(s.upstream_bytes) + " to clients");
  out += labelled("first byte", times_text(s.observed.first_byte_us));
  out += labelled("whole answer", times_text(s.observed.whole_us));
  out += labelled("trace bytes", with_thousands(bytes));
  return out;
}

void times_json(const char* name, const DurationHistogram& times, JsonWriter& json) {
  json.key(name).begin_object().member("count", times.count());
  json.member("p50", times.at(0.5)).member("p99", times.at(0.99)).member("max", times.most_us());
  json.end_object();
}

std::string summary_json(const std::string& output, const ProxySummary& s, uint64_t bytes) {
  const ObserverCounts& counts = s.observed.counts;
  JsonWriter json;
  json.begin_object().member("trace", output).member("bytes", bytes);
  json.member("exchanges", counts.recorded).key("not_recorded").begin_object();
  for (size_t i = 0; i < kNotRecordedReasons; ++i)
    if (counts.not_recorded[i] != 0)
      json.member(to_text(static_cast<NotRecorded>(i)), counts.not_recorded[i]);
  json.end_object();
  json.member("given_up_connections", counts.given_up_connections);
  json.member("other_requests", counts.other_requests).member("connections", s.connections);
  json.member("refused_connections", s.refused_connections);
  json.member("cut_connections", s.cut_connections);
  json.member("accept_failures", s.accept_failures);
  json.member("client_bytes", s.client_bytes).member("upstream_bytes", s.upstream_bytes);
  times_json("first_byte_us", s.observed.first_byte_us, json);
  times_json("whole_us", s.observed.whole_us, json);
  json.end_object();
  return json.take();
}

ProxyOptions proxy_options(const RecordProxyOptions& o) {
  if (o.upstream.empty())
    throw Error(ErrorCode::usage, "name the server: --upstream http://HOST:PORT", "--proxy");
  ProxyOptions out;
  parse_http_url(o.upstream, "--upstream", out.upstream_host, out.upstream_port);
  const std::string listen =
      o.listen.find("://") == std::string::npos ? "http://" + o.listen : o.listen;
  if (listen.ends_with(":0"))  // any free port
    parse_http_url(listen.substr(0, listen.size() - 2), "--listen", out.listen_host,
                   out.listen_port);
  else
    parse_http_url(listen, "--listen", out.listen_host, out.listen_port);
  if (listen.ends_with(":0")) out.listen_port = 0;
  out.connections = o.connections;
  out.drain_ms = o.drain_s * 1000;
  return out;
}

}  // namespace

void add_proxy_options(CLI::App& command, RecordProxyOptions& o) {
  const char* group = "Proxy";
  command.add_flag("--proxy", o.on, "Record the traffic of another server, from before it")
      ->group(group);
  command.add_option("--upstream", o.upstream, "The server: http://HOST:PORT")->group(group);
  command.add_option("--listen", o.listen, "Where clients connect; port 0: any that is free")
      ->group(group)
      ->capture_default_str();
  command.add_option("--connections", o.connections, "Clients at once; more wait")
      ->group(group)
      ->check(CLI::Range(1, 100000));
  command.add_option("--drain-s", o.drain_s, "After SIGTERM, running exchanges may last so long")
      ->group(group)
      ->check(CLI::Range(0, 86400));
}

int run_record_proxy(const CommandContext& context, const RecordProxyOptions& o,
                     const std::string& output, bool force) {
  const ProxyOptions options = proxy_options(o);
  if (!force && std::filesystem::exists(output))
    throw Error(ErrorCode::usage, "the file exists; --force replaces it", output);
  raise_descriptor_limit();
  TraceSink sink(output, header_of(options), force);
  const auto listening = [&](uint16_t port) {
    if (context.quiet) return;
    std::fprintf(stderr, "listening on http://%s:%u, before %s; SIGTERM ends it\n",
                 options.listen_host.c_str(), unsigned{port}, o.upstream.c_str());
  };
  const ProxySummary summary =
      run_proxy(options, sink, listening, [&] { return context.stopped(); });
  const uint64_t bytes = sink.close();
  emit(context, summary_text(output, summary, bytes), summary_json(output, summary, bytes));
  if (!summary.observed.counts.first_write_error.empty())
    throw Error(ErrorCode::environment,
                "the trace is not whole: " + summary.observed.counts.first_write_error, output);
  return 0;
}

}  // namespace redecode
