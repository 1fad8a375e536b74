#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>
#include <set>

#include "engine/litmus/verdict.h"
#include "engine/timeline/perfetto.h"
#include "engine/timeline/svg.h"

namespace redecode {
namespace {

// A reader of the wire format that knows nothing of the writer.
struct Field {
  uint32_t number = 0, wire = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    Field f;
    const uint64_t key = varint();
    f.number = static_cast<uint32_t>(key >> 3);
    f.wire = static_cast<uint32_t>(key & 7);
    if (f.wire == 0) {
      f.value = varint();
    } else if (f.wire == 1) {
      REQUIRE(rest_.size() >= 8);
      for (int i = 0; i < 8; ++i)
        f.value |= uint64_t{static_cast<uint8_t>(rest_[static_cast<size_t>(i)])} << (8 * i);
      rest_.remove_prefix(8);
    } else {
      REQUIRE(f.wire == 2);
      const uint64_t size = varint();
      REQUIRE(size <= rest_.size());
      f.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
    return f;
  }

 private:
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      REQUIRE(!rest_.empty());
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      out |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return out;
    }
    FAIL("a varint without end");
    return 0;
  }
  std::string_view rest_;
};

std::optional<Field> find(std::string_view message, uint32_t number) {
  Fields fields(message);
  while (const auto f = fields.next())
    if (f->number == number) return f;
  return std::nullopt;
}

const char* const kRace =
    "scenario t\npersist x @X =x0\n1 M rec f\n2 S wait f\n3 S alloc a @P\n4 S k make r=x w=a:1\n"
    "5 S rec r\n6 M wait r\n7 M k use r=a:1\n8 S free a\n9 S alloc b @P\n10 S k next r=x w=b:1\n";

struct Drawn {
  LitmusProgram p = lower(parse_litmus(kRace, "t"));
  OpGraph graph = op_graph(p.program, Submission::eager);
  std::vector<Finding> findings = check_litmus(p);
  std::string timeline() const {
    const TimedRun run = timed_run(p.program, graph, known_device("h200"), Submission::eager);
    StringSink sink;
    write_timeline({p.program, graph, run, findings, 0}, sink);
    return sink.text;
  }
};

}  // namespace

TEST_CASE("A timeline has a track a stream, slices that nest, flows in pairs and the finding",
          "[timeline]") {
  const Drawn drawn;
  const std::string bytes = drawn.timeline();
  CHECK(bytes == drawn.timeline());
  std::map<uint64_t, std::string> tracks;
  std::map<uint64_t, int> depth, flows;
  std::multiset<std::string> names;
  uint64_t last_ns = 0, counters = 0;
  Fields packets(bytes);
  while (const auto packet = packets.next()) {
    REQUIRE(packet->number == 1);
    if (const auto track = find(packet->bytes, 60))
      tracks[find(track->bytes, 1)->value] = find(track->bytes, 2)->bytes;
    const auto event = find(packet->bytes, 11);
    if (!event) continue;
    const uint64_t now = find(packet->bytes, 8)->value;
    CHECK(now >= last_ns);
    last_ns = now;
    const uint64_t track = find(event->bytes, 11)->value;
    REQUIRE(tracks.contains(track));
    const uint64_t type = find(event->bytes, 9)->value;
    if (type == 1) ++depth[track];
    if (type == 2) CHECK(--depth[track] == 0);
    if (type == 4) ++counters;
    if (const auto name = find(event->bytes, 23)) names.insert(std::string(name->bytes));
    Fields fields(event->bytes);
    while (const auto f = fields.next())
      if (f->number == 47) ++flows[f->value];
  }
  for (const auto& [track, open] : depth) CHECK(open == 0);
  for (const auto& [flow, ends] : flows) CHECK(ends == 2);
  CHECK(flows.size() == 1);
  CHECK(names == std::multiset<std::string>{"make", "use", "next", "race"});
  CHECK(counters == 3);
}

TEST_CASE("The picture of a race has both ops, the streams and a dashed edge", "[timeline]") {
  const Drawn drawn;
  REQUIRE(drawn.findings.size() == 1);
  const std::string svg = finding_svg(drawn.p.program, drawn.graph, drawn.findings[0]);
  CHECK(svg == finding_svg(drawn.p.program, drawn.graph, drawn.findings[0]));
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.ends_with("</svg>\n"));
  for (const char* part : {">use<", ">next<", ">make<", "stream 0", "stream 1", "stroke-dasharray",
                           "read a", "write b"}) {
    INFO(part);
    CHECK(svg.find(part) != std::string::npos);
  }
}

TEST_CASE("Text in a picture is escaped", "[timeline]") {
  Drawn drawn;
  auto names = std::make_shared<NameTable>(*drawn.p.program.names);
  for (std::string& name : names->names)
    if (name == "use") name = "a<b>&\"c";
  drawn.p.program.names = names;
  const std::string svg = finding_svg(drawn.p.program, drawn.graph, drawn.findings[0]);
  CHECK(svg.find("a&lt;b&gt;&amp;&quot;c") != std::string::npos);
  CHECK(svg.find("a<b>") == std::string::npos);
}

}  // namespace redecode
