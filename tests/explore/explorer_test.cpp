#include <catch2/catch_test_macros.hpp>

#include "engine/explore/explorer.h"
#include "engine/litmus/verdict.h"
#include "engine/repair/repair.h"
#include "tests/explore/random_litmus.h"
#include "traces/error.h"

namespace redecode {
namespace {

struct Explored {
  LitmusProgram program;
  OpGraph graph;
  std::vector<Finding> races;
  Exploration exploration;
};

Explored explored(const std::string& text, ExploreOptions options = {}) {
  Explored out;
  out.program = lower(parse_litmus(text, "test"));
  out.graph = op_graph(out.program.program, Submission::eager);
  out.races = races_of(out.program.program, out.program.extents, Submission::eager);
  out.exploration =
      explore(out.program.program, out.program.extents, out.graph, out.races, options);
  return out;
}

const char* const kReuse =
    "scenario reuse\npersist x @X =x0\n1 M alloc h @P\n2 M k proj w=h:h1\n3 M rec f\n"
    "4 S wait f\n5 S k indexer r=h:h1\n6 M free h\n7 M alloc y @P\n8 M k gemm w=y:y1\n"
    "9 S rec j\n10 M wait j\n11 M k attn r=y:y1\n";

}  // namespace

TEST_CASE("One guided order turns a race into a witness that anchors name", "[explore]") {
  const Explored x = explored(kReuse);
  REQUIRE(x.races.size() == 1);
  CHECK_FALSE(x.exploration.fifo_wrong);
  CHECK(x.exploration.guided.tried == 1);
  CHECK(x.exploration.guided.wrong == 1);
  REQUIRE(x.exploration.witness);
  CHECK(x.exploration.witness->order == "before:0/gemm<indexer");
  CHECK(x.exploration.exhaustive.complete);
  CHECK(x.exploration.exhaustive_count.wrong == 1);
  CHECK(coverage_line(x.exploration).starts_with("exhaustive: all 2 classes"));
}

TEST_CASE("A fault that needs no order has fifo as its witness", "[explore]") {
  const Explored x = explored(
      "scenario s\npersist r @R =none\n1 M k a w=r:A\n2 M k b w=r:B\n"
      "3 M k c r=r:A\n");
  CHECK(x.exploration.fifo_wrong);
  CHECK(x.exploration.witness->order == "fifo");
}

TEST_CASE("Clean programs have no wrong order", "[explore]") {
  const Explored x = explored(
      "scenario s\npersist r @R =none\n1 M k a w=r:A\n2 M rec e\n"
      "3 S wait e\n4 S k b r=r:A\n5 S rec f\n6 M wait f\n7 M k c w=r:C\n");
  CHECK_FALSE(x.exploration.witness);
  CHECK(x.exploration.random.wrong == 0);
  CHECK(x.exploration.exhaustive.complete);
}

TEST_CASE("A witness needs as few flips as possible", "[explore]") {
  // Wrong only if both pairs are flipped: c sees B of 3 unless 1 comes after it.
  const Explored x = explored(
      "scenario s\npersist r @R =v\npersist q @Q =v\n1 M k a w=r:v\n2 M k b w=q:v\n"
      "3 S k c w=r:v\n4 S k d r=q:v\n5 S k e w=r:w\n");
  for (const PairResult& pair : x.exploration.pairs)
    if (pair.witness) CHECK(pair.witness->flips.size() == 1);
}

TEST_CASE("Where a search ends early it says so", "[explore]") {
  std::string text = "scenario s\npersist r @R =v\n";
  for (int i = 1; i <= 70; ++i)
    text += std::to_string(i) + (i % 2 ? " M" : " S") + " k op" + std::to_string(i) + " w=r\n";
  const Explored x = explored(text);
  CHECK_FALSE(x.exploration.exhaustive.complete);
  CHECK(coverage_line(x.exploration).starts_with("not exhaustive: 1000 random orders"));
}

TEST_CASE("Order strings of precedences survive the round trip and name the byte that is wrong",
          "[explore]") {
  const std::string text = "41/qkv_a@4<indexer.logits@3,b#2<c;60/x<y";
  CHECK(to_text(parse_precedences(text)) == text);
  for (const char* bad : {"", "41", "41/", "41/a", "41/a<", "41/a<b;", "x/a<b", "41/a<b,",
                          "9/a<b;3/c<d", "41/a@<b", "41/a#x<b"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_precedences(bad), Error);
  }
}

TEST_CASE("The fewest edges mend all races of random programs, and each edge is needed",
          "[explore][repair]") {
  uint64_t edges = 0, races = 0;
  for (uint64_t i = 0; i < 1500; ++i) {
    RandomSequence random(21, i);
    RandomLitmusOptions options;
    options.outside = false;
    const std::string text = random_litmus(random, options);
    const LitmusProgram p = lower(parse_litmus(text, "random"));
    auto found = races_of(p.program, p.extents, Submission::eager);
    const bool prologue =
        std::ranges::any_of(p.program.commands, [](const Command& c) { return c.before_wait; });
    if (prologue) continue;
    const Repair r = repair(p.program, p.extents, Submission::eager, found);
    INFO(text << patch_text(p.program, r.edges));
    REQUIRE(races_of(with_edges(p.program, r.edges), p.extents, Submission::eager).empty());
    for (size_t skip = 0; skip < r.edges.size(); ++skip) {
      auto fewer = r.edges;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(skip));
      REQUIRE_FALSE(races_of(with_edges(p.program, fewer), p.extents, Submission::eager).empty());
    }
    REQUIRE(r.edges.size() <= found.size());
    edges += r.edges.size();
    races += found.size();
  }
  CHECK(edges > 500);
  CHECK(races > edges);
}

TEST_CASE("Every way offered for a reuse race was tried and mends it", "[explore][repair]") {
  const Explored x = explored(kReuse);
  const Repair r = repair(x.program.program, x.program.extents, Submission::eager, x.races);
  REQUIRE(r.edges.size() == 1);
  CHECK(patch_text(x.program.program, r.edges) ==
        "+ after `indexer`: record an event on stream 1\n"
        "+ before `gemm`: wait for it on stream 0\n");
  REQUIRE(r.options.size() == 1);
  std::vector<RepairKind> kinds;
  for (const RepairOption& o : r.options[0]) {
    CHECK(o.verified);
    kinds.push_back(o.kind);
  }
  CHECK(kinds == std::vector{RepairKind::wait, RepairKind::record_stream, RepairKind::keep_alive,
                             RepairKind::serialise});
}

TEST_CASE("Waits that order nothing new are named", "[explore][repair]") {
  const LitmusProgram p = lower(
      parse_litmus("scenario s\npersist r @R =v\n1 M k a w=r:A\n2 M rec e\n3 S wait e\n4 S wait e\n"
                   "5 S k b r=r:A\n",
                   "s"));
  const Repair r = repair(p.program, p.extents, Submission::eager, {});
  CHECK(r.needless_waits.size() == 2);
}

TEST_CASE("Tiles: an op between two halves of another, where an edge allows it", "[explore]") {
  const Explored x = explored("scenario s\npersist r @R =v\n1 M k whole w=r:a\n2 S k look r=r:a\n");
  REQUIRE(x.exploration.pairs.size() == 1);
  CHECK(x.exploration.pairs[0].torn_by_first);
  CHECK(x.exploration.pairs[0].torn_by_second);
  CHECK(x.exploration.tiles.tried == 2);
  // Two writers of one content: no order of whole ops shows them, nor do tiles.
  const Explored same = explored(
      "scenario s\npersist r @R =v\n1 M k one w=r:a\n2 S k two w=r:a\n3 S rec e\n4 M wait e\n"
      "5 M k look r=r:a\n");
  CHECK(same.exploration.guided.wrong == 0);
  CHECK(same.exploration.tiles.wrong == 0);
  CHECK(same.exploration.tiles.tried == 2);
  // Ordered ops have no order with one between the tiles of the other.
  const LitmusProgram p = lower(parse_litmus(
      "scenario s\npersist r @R =v\n1 M k one w=r:a\n2 M k two r=r:a\n3 H k host r=r\n", "s"));
  CHECK_FALSE(torn_run(p.program, p.extents, Submission::eager, 0, 1));
  CHECK_FALSE(tiled(p.program, 2, 0));
  const auto tiles = tiled(p.program, 0, 1);
  REQUIRE(tiles);
  CHECK(tiles->program.commands.size() == p.program.commands.size() + 5);
  CHECK((*tiles->program.names)[tiles->program.commands[tiles->other].name] == "two");
}

}  // namespace redecode
