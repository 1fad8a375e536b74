// Which commands are ordered, and what a race says.
#include "tests/plan/tiny_program.h"

namespace redecode {
namespace {

TEST_CASE("one stream orders everything") {
  Tiny p;
  p.persist("x").op(M, "a", {w("x")}).op(M, "b", {u("x")}).op(M, "c", {r("x")});
  CHECK(eager(p).empty());
  CHECK(graph(p).empty());
}

TEST_CASE("two streams without an edge: each kind of conflict") {
  const auto pair = [](Operand first, Operand second) {
    Tiny p;
    p.persist("x").op(M, "a", {first}).op(S, "b", {second});
    CHECK(eager(p) == graph(p));
    return eager(p);
  };
  const Short race = {"race a,b"};
  CHECK(pair(w("x"), r("x")) == race);
  CHECK(pair(r("x"), w("x")) == race);
  CHECK(pair(w("x"), w("x")) == race);
  CHECK(pair(u("x"), r("x")) == race);
  CHECK(pair(r("x"), u("x")) == race);
  CHECK(pair(tmp("x"), r("x")) == race);
  CHECK(pair(r("x"), tmp("x")) == race);
  CHECK(pair(tmp("x"), tmp("x")) == race);
  CHECK(pair(r("x"), r("x")).empty());
  CHECK(pair(w("x", 0, 32), r("x", 32, 32)).empty());
  CHECK(pair(w("x", 0, 33), r("x", 32, 32)) == race);
}

TEST_CASE("an event edge orders; record after the access, wait before") {
  Tiny good;
  good.persist("x").op(M, "a", {w("x")}).rec(M, 0).wait(S, 0).op(S, "b", {r("x")});
  CHECK(eager(good).empty());
  CHECK(graph(good).empty());
  Tiny early_record;
  early_record.persist("x").rec(M, 0).op(M, "a", {w("x")}).wait(S, 0).op(S, "b", {r("x")});
  CHECK(eager(early_record) == Short{"race a,b"});
  Tiny late_wait;
  late_wait.persist("x").op(M, "a", {w("x")}).rec(M, 0).op(S, "b", {r("x")}).wait(S, 0);
  CHECK(graph(late_wait) == Short{"race a,b"});
}

TEST_CASE("edges are transitive over a third stream") {
  Tiny p;
  p.persist("x").op(S, "a", {w("x")}).join(S2, S).join(S3, S2).op(S3, "b", {u("x")});
  CHECK(eager(p).empty());
  Tiny cut;
  cut.persist("x").op(S, "a", {w("x")}).join(S3, S2).join(S2, S).op(S3, "b", {u("x")});
  CHECK(eager(cut) == Short{"race a,b"});
}

TEST_CASE("a missing fork and a missing join are each a race") {
  const auto program = [](bool fork, bool join) {
    Tiny p;
    p.persist("h").persist("side", 0, false).op(M, "norm", {w("h")});
    if (fork) p.rec(M, 0).wait(S, 0);
    p.op(S, "indexer", {r("h"), w("side")});
    if (join) p.rec(S, 1).wait(M, 1);
    p.op(M, "attn", {r("side")});
    return p;
  };
  Tiny both = program(true, true), no_fork = program(false, true), no_join = program(true, false);
  CHECK(graph(both).empty());
  CHECK(graph(no_fork) == Short{"race norm,indexer"});
  CHECK(graph(no_join) == Short{"race indexer,attn"});
  CHECK(eager(no_fork) == Short{"race norm,indexer"});
  CHECK(eager(no_join) == Short{"race indexer,attn"});
}

TEST_CASE("a wait takes the latest record before it") {
  Tiny rerecorded;  // the wait means the first record
  rerecorded.persist("x")
      .op(S, "a", {w("x")})
      .rec(S, 0)
      .rec(M, 0)
      .wait(S2, 0)
      .op(S2, "b", {r("x")});
  CHECK(eager(rerecorded) == Short{"race a,b"});
  Tiny newer;
  newer.persist("x").rec(S, 0).op(S, "a", {w("x")}).rec(S, 0).wait(S2, 0).op(S2, "b", {r("x")});
  CHECK(eager(newer).empty());
  Tiny later;  // re-recording after the wait does not move the wait
  later.persist("x").rec(S, 0).wait(S2, 0).op(S, "a", {w("x")}).rec(S, 0).op(S2, "b", {r("x")});
  CHECK(eager(later) == Short{"race a,b"});
}

TEST_CASE("a wait before any record is no edge") {
  Tiny p;
  p.persist("x").op(S, "a", {w("x")}).wait(M, 0).rec(S, 0).op(M, "b", {r("x")});
  CHECK(eager(p) == Short{"race a,b"});
  CHECK(graph(p) == Short{"race a,b"});
}

TEST_CASE("events of an earlier step are not those of this one") {
  Tiny first, second;
  first.persist("x").op(S, "a", {w("x")}).rec(S, 0);
  second.persist("x").wait(M, 0).op(M, "b", {r("x")});
  Steps steps;
  CHECK(steps.add(first, Submission::eager).empty());
  CHECK(steps.add(second, Submission::eager) == Short{"race a,b"});
}

TEST_CASE("the host: what it did before it issued an op is ordered, what it does after is not") {
  Tiny before;
  before.persist("pin").persist("dev").host("fill", {w("pin")}).copy(C, "h2d", "pin", "dev");
  CHECK(eager(before).empty());
  Tiny after;
  after.persist("pin").persist("dev").copy(C, "h2d", "pin", "dev").host("refill", {w("pin")});
  CHECK(eager(after) == Short{"race h2d,refill"});
  Tiny synced;
  synced.persist("pin")
      .persist("dev")
      .copy(C, "h2d", "pin", "dev")
      .sync(C)
      .host("refill", {w("pin")});
  CHECK(eager(synced).empty());
  Tiny wrong_stream;
  wrong_stream.persist("pin")
      .persist("dev")
      .copy(C, "h2d", "pin", "dev")
      .sync(M)
      .host("refill", {w("pin")});
  CHECK(eager(wrong_stream) == Short{"race h2d,refill"});
  Tiny event;
  event.persist("pin")
      .persist("dev")
      .copy(C, "d2h", "dev", "pin")
      .rec(C, 0)
      .wait(kHost, 0)
      .host("read", {r("pin")});
  CHECK(eager(event).empty());
}

TEST_CASE("a sync orders the stream before everything that the host issues later") {
  Tiny p;
  p.persist("x").op(S, "a", {w("x")}).sync(S).op(M, "b", {u("x")}).op(S2, "c", {r("x", 0, 1)});
  CHECK(eager(p) == Short{"race b,c"});
}

TEST_CASE("copy engines and fills race like kernels") {
  Tiny p;
  p.persist("a").persist("b").copy(C, "page_out", "a", "b").op(M, "reuse", {w("a")});
  CHECK(eager(p) == Short{"race page_out,reuse"});
  Tiny q;
  q.persist("a").persist("b").copy(C, "page_in", "a", "b").op(M, "use", {r("b")});
  CHECK(eager(q) == Short{"race page_in,use"});
  Tiny f;
  f.persist("a").fill(S, "zero", w("a")).op(M, "use", {r("a")});
  CHECK(graph(f) == Short{"race zero,use"});
  Tiny reads_only;
  reads_only.persist("a").persist("b").copy(C, "page_out", "a", "b").op(M, "use", {r("a")});
  CHECK(eager(reads_only).empty());
}

TEST_CASE("ranges behind an address operand are what races; the operand itself is not") {
  Tiny p;
  p.persist("kv", 0, true, 256);
  Operand page = w("kv", 64, 64);
  page.request = 7;
  p.paged(S, "append", "kv", {page});
  p.op(M, "apart", {r("kv", 0, 64)});
  p.op(M, "attn", {r("kv", 100, 8)});
  CHECK(eager(p) == Short{"race append,attn"});
}

TEST_CASE(
    "eager side streams run on into the next step; the main stream's order alone is no edge") {
  Tiny first, second, joined;
  first.persist("x").join(S, M).op(S, "late", {r("x")});
  second.persist("x").op(M, "next", {w("x")});
  joined.persist("x").join(M, S).op(M, "next", {w("x")});
  Steps without, with;
  CHECK(without.add(first, Submission::eager).empty());
  CHECK(without.add(second, Submission::eager) == Short{"race late,next"});
  CHECK(without.last[0].first.step == 0);
  CHECK(without.last[0].second.step == 1);
  CHECK(without.last[0].step == 1);
  with.add(first, Submission::eager);
  CHECK(with.add(joined, Submission::eager).empty());
}

TEST_CASE("a graph completes as a whole before what follows on stream 0") {
  Tiny first, second;
  first.persist("x").join(S, M).op(S, "late", {r("x")});
  second.persist("x").op(S, "side", {w("x", 0, 4)}).op(M, "next", {w("x")});
  Steps graphs;
  CHECK(graphs.add(first, Submission::graph).empty());
  CHECK(graphs.add(second, Submission::graph) == Short{"race side,next"});
  Steps mixed;  // an eager side stream does not follow the graph, the main stream does
  mixed.add(first, Submission::graph);
  CHECK(mixed.add(second, Submission::eager) == Short{"race late,side", "race side,next"});
}

TEST_CASE("a graph's nodes follow stream 0 only: eager side streams may still be at it") {
  Tiny before, launch;
  before.persist("x").persist("y").op(M, "main", {w("x")}).op(S, "side", {w("y")});
  launch.persist("x").persist("y").op(S, "node", {r("x"), r("y")});
  Steps steps;
  steps.add(before, Submission::eager);
  CHECK(steps.add(launch, Submission::graph) == Short{"race side,node"});
  CHECK(steps.last[0].advice.find("before the launch") != std::string::npos);
  Steps eager_steps;  // the same program eager: S follows S, and nothing else
  eager_steps.add(before, Submission::eager);
  CHECK(eager_steps.add(launch, Submission::eager) == Short{"race main,node"});
}

TEST_CASE("a host write before a launch reaches every node; after it none") {
  Tiny before, after, synced;
  before.persist("in").host("fill", {w("in")}).op(S, "node", {r("in")});
  CHECK(graph(before).empty());
  after.persist("in").op(S, "node", {r("in")}).host("refill", {w("in")});
  CHECK(graph(after) == Short{"race node,refill"});
  synced.persist("in").op(S, "node", {r("in")}).sync(M).host("refill", {w("in")});
  CHECK(graph(synced).empty());
  Tiny next_step;
  next_step.persist("in").host("refill", {w("in")});
  Steps steps;
  steps.add(before, Submission::graph);
  CHECK(steps.add(next_step, Submission::graph) == Short{"race node,refill"});
}

TEST_CASE("sync_all orders all before and all after") {
  Tiny first, second;
  first.persist("x").op(S, "a", {w("x")}).op(S2, "b", {r("x", 0, 8)});
  second.persist("x").op(S3, "c", {w("x")});
  Steps steps;
  CHECK(steps.add(first, Submission::eager) == Short{"race a,b"});
  steps.checker.sync_all();
  CHECK(steps.add(second, Submission::eager).empty());
}

TEST_CASE("each pair is reported once a step, with the bytes of all its overlaps") {
  Tiny p;
  p.persist("x").persist("y");
  p.op(M, "a", {w("x", 0, 10), w("x", 8, 4), w("y")});
  p.op(S, "b", {r("x", 4, 20), u("x", 6, 2), r("y", 32, 32)});
  const auto found = findings(p, Submission::eager);
  REQUIRE(found.size() == 1);
  CHECK(found[0].size_bytes == 8 + 32);
  CHECK(found[0].first.buffer == "y");  // the wider of the two
  CHECK(found[0].offset_bytes == 32);
}

TEST_CASE("a replayed graph with an inner race shows it every step, and nothing across steps") {
  Tiny p;
  p.persist("x").op(M, "a", {w("x")}).op(S, "b", {r("x")});
  Steps steps;
  for (int i = 0; i < 5; ++i) {
    CHECK(steps.add(p, Submission::graph) == Short{"race a,b"});
    CHECK(steps.last[0].first.step == steps.last[0].second.step);
  }
}

TEST_CASE("a race names both sides, the place, the missing edge and what to do") {
  Tiny p;
  p.alloc(M, "index_q", P0, 1024);
  p.op(M, "index_proj", {w("index_q")}).layer(3);
  p.rec(M, 0).wait(S3, 0);
  p.persist("logits", 0, false);
  p.op(S3, "indexer.logits", {r("index_q"), w("logits")}).layer(3);
  p.free("index_q");
  p.alloc(M, "wq_out", P0 + 256, 512);
  p.op(M, "wq_b", {w("wq_out")}).layer(4);
  const auto found = findings(p, Submission::graph);
  REQUIRE(in_short(found) == Short{"race indexer.logits,wq_b"});
  const Finding& f = found[0];
  CHECK(f.layer == 3);
  CHECK(f.first.buffer == "index_q");
  CHECK(f.first.stream == 3);
  CHECK(f.first.command == 4);
  CHECK(f.first.generation == 1);
  CHECK(f.first.access == Access::read);
  CHECK(f.second.buffer == "wq_out");
  CHECK(f.second.stream == 0);
  CHECK(f.second.command == 7);
  CHECK(f.second.layer == 4);
  CHECK(f.second.generation == 2);
  CHECK(f.second.access == Access::write);
  CHECK(f.offset_bytes == 256);
  CHECK(f.size_bytes == 512);
  CHECK(f.missing_edge == "indexer.logits (stream 3) -> wq_b (stream 0)");
  CHECK(f.advice ==
        "Add a wait on stream 0 for an event recorded after `indexer.logits`, or record_stream "
        "`index_q` on stream 3, or free it after the join");
}

TEST_CASE("advice for one buffer, and for the host") {
  Tiny same;
  same.persist("x").op(M, "a", {w("x")}).op(S, "b", {r("x")});
  CHECK(findings(same, Submission::eager)[0].advice ==
        "Add a wait on stream 1 for an event recorded after `a`");
  Tiny host;
  host.persist("x").op(M, "a", {w("x")}).host("b", {r("x")});
  CHECK(findings(host, Submission::eager)[0].advice == "Let the host wait for stream 0 before `b`");
  CHECK(findings(host, Submission::eager)[0].missing_edge == "a (stream 0) -> b (host)");
}

TEST_CASE("the request of a KV range is named") {
  Tiny p;
  p.persist("kv");
  Operand page = w("kv", 0, 32);
  page.request = 42;
  p.op(S, "append", {page}).paged(M, "attn", "kv", {[&] {
                                    Operand o = r("kv", 0, 32);
                                    o.request = 42;
                                    return o;
                                  }()});
  const auto found = findings(p, Submission::eager);
  REQUIRE(found.size() == 1);
  CHECK(found[0].request == 42);
}

TEST_CASE("a command does not race with itself, in whatever order its operands stand") {
  Tiny p;
  p.alloc(M, "x", P0).fill(M, "zero", w("x"));
  p.op(M, "inplace", {w("x"), r("x"), u("x", 3, 9), tmp("x", 60, 4)});
  CHECK(eager(p).empty());
}

TEST_CASE("a later ordered touch stands in for an earlier one: fix the later, and all is fixed") {
  Tiny p;
  p.persist("x").op(S, "r1", {r("x")}).op(S, "r2", {r("x")}).op(M, "write", {w("x")});
  CHECK(eager(p) == Short{"race r2,write"});
  Tiny part;  // r2 covers only a part: r1 stays for the rest
  part.persist("x").op(S, "r1", {r("x")}).op(S, "r2", {r("x", 0, 8)}).op(M, "write", {w("x")});
  CHECK(eager(part) == Short{"race r1,write", "race r2,write"});
  CHECK(findings(part, Submission::eager)[0].size_bytes == kDefaultBytes - 8);
}

TEST_CASE("findings stand in program order of their second access, then of their first") {
  Tiny p;
  p.persist("x").persist("y");
  p.op(S, "a", {w("x")}).op(S2, "b", {w("y")}).op(M, "c", {r("y"), r("x")}).op(S3, "d", {r("x")});
  CHECK(eager(p) == Short{"race a,c", "race b,c", "race a,d"});
}

TEST_CASE("the order of operands does not change what is found") {
  const std::vector<Operand> operands = {r("x", 0, 16), w("x", 40, 8), u("y", 0, 8), tmp("y", 32)};
  Short reference;
  for (size_t turn = 0; turn < operands.size(); ++turn) {
    std::vector<Operand> turned;
    for (size_t i = 0; i < operands.size(); ++i)
      turned.push_back(operands[(i + turn) % operands.size()]);
    Tiny p;
    p.persist("x").persist("y");
    p.op(S, "a", {w("x"), w("y", 0, 4)}).op(M, "b", turned);
    const auto found = findings(p, Submission::eager);
    if (turn == 0) reference = in_short(found);
    CHECK(in_short(found) == reference);
    CHECK(found[0].size_bytes == 16 + 8 + 4);
  }
  CHECK(reference == Short{"race a,b"});
}

TEST_CASE("a moved checker goes on where it was") {
  Tiny first, second;
  first.persist("x").op(S, "a", {w("x")});
  second.persist("x").op(M, "b", {r("x")});
  HazardChecker one;
  std::vector<Finding> out;
  one.add(0, first.done(), first.extents, Submission::eager, out);
  HazardChecker two = std::move(one);
  two.add(1, second.done(), second.extents, Submission::eager, out);
  CHECK(in_short(out) == Short{"race a,b"});
}

}  // namespace
}  // namespace redecode
