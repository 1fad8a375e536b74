#include <zstd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/http/proxy_net.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

using namespace http_test;

// What `zstd -dc` gives.
std::string decompressed(const std::string& stored) {
  std::string out, piece(65536, '\0');
  ZSTD_DStream* stream = ZSTD_createDStream();
  ZSTD_inBuffer in = {stored.data(), stored.size(), 0};
  size_t rest = 1;
  while (in.pos < in.size || rest != 0) {
    ZSTD_outBuffer to = {piece.data(), piece.size(), 0};
    const size_t before = in.pos;
    rest = ZSTD_decompressStream(stream, &to, &in);
    if (ZSTD_isError(rest) || (to.pos == 0 && in.pos == before)) break;
    out.append(piece, 0, to.pos);
  }
  ZSTD_freeDStream(stream);
  return out;
}

class FileSink final : public ExchangeSink {
 public:
  explicit FileSink(const std::filesystem::path& path)
      : writer_(path, header(), {}, /*overwrite=*/true) {}
  void write(const Exchange& exchange) override { writer_.write(exchange); }
  void close() { writer_.close(); }

 private:
  static TraceHeader header() {
    TraceHeader out;
    out.writer = "test";
    out.model.family = "external";
    return out;
  }
  TraceWriter writer_;
};

}  // namespace

TEST_CASE("Proxy: keys in headers, queries and path prefixes never reach the trace file") {
  const std::string key = "sk-0123456789-very-secret";
  const auto path = std::filesystem::temp_directory_path() /
                    ("redecode_proxy_keys_" + std::to_string(::getpid()) + ".rdt");
  const std::string request = post(
      "/gateway/" + key + "/v1/completions?api_key=" + key, R"({"prompt":"a visible prompt"})",
      "Authorization: Bearer " + key + "\r\nX-Api-Key: " + key + "\r\nCookie: k=" + key + "\r\n");
  std::string reply = answer(R"({"choices":[{"text":"a visible answer ..."}]})");
  reply.insert(reply.find("\r\n") + 2, "Set-Cookie: k=" + key + "\r\n");
  ScriptedServer server([&](Socket& socket) {
    while (socket.receive_exactly(request.size()).size() == request.size()) socket.send(reply);
  });
  {
    FileSink sink(path);
    RunningProxy proxy(server.port(), {}, &sink);
    Socket client = Socket::connect(proxy.port());
    for (int i = 0; i < 3; ++i) {
      client.send(request);
      CHECK(client.receive_exactly(reply.size()) == reply);
    }
    client.close();
    proxy.stop();
    sink.close();
    CHECK(proxy.summary.observed.counts.recorded == 3);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  const std::string plain = decompressed(stored);
  CHECK(plain.find("a visible prompt") != std::string::npos);
  CHECK(plain.find("a visible answer") != std::string::npos);
  for (const std::string& bytes : {stored, plain}) {
    CHECK(bytes.find(key) == std::string::npos);
    CHECK(bytes.find("very-secret") == std::string::npos);
    CHECK(bytes.find("api_key") == std::string::npos);
  }
  TraceReader reader(path);
  CHECK(reader.header().model.family == "external");
  uint64_t exchanges = 0;
  for (TraceRecord record; reader.next(record);) {
    if (!record.exchange) continue;
    ++exchanges;
    CHECK(record.exchange->path == "/v1/completions");
    CHECK(record.exchange->choices.at(0).text == "a visible answer ...");
  }
  CHECK(exchanges == 3);
  std::filesystem::remove(path);
}

}  // namespace redecode
