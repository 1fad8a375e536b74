// Whose content a byte holds: use after free, unwritten, stale, and accesses that leave their
// buffer.
#include "tests/plan/tiny_program.h"

namespace redecode {
namespace {

TEST_CASE("a command that names a buffer after its free") {
  Tiny p;
  p.alloc(M, "t", P0).op(M, "make", {w("t")}).free("t").op(M, "use", {r("t", 8, 16)});
  const auto found = findings(p, Submission::eager);
  REQUIRE(in_short(found) == Short{"use_after_free use"});
  CHECK(found[0].first.buffer == "t");
  CHECK(found[0].offset_bytes == 8);
  CHECK(found[0].size_bytes == 16);
  Tiny ok;
  ok.alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "use", {r("t")}).free("t");
  CHECK(eager(ok).empty());
}

TEST_CASE("use after free is host order: the stream of the free does not matter") {
  Tiny p;
  p.alloc(S, "t", P0).op(S, "make", {w("t")}).free("t").op(M, "use", {w("t")});
  CHECK(eager(p) == Short{"use_after_free use", "race make,use"});
  CHECK(graph(p) == Short{"use_after_free use", "race make,use"});
}

TEST_CASE("use after free is reported once a command and buffer, and not also as bad content") {
  Tiny p;
  p.alloc(M, "t", P0).free("t").op(M, "use", {r("t", 0, 8), r("t", 16, 8), w("t", 32, 8)});
  const auto found = findings(p, Submission::eager);
  REQUIRE(in_short(found) == Short{"use_after_free use"});
  CHECK(found[0].size_bytes == 24);
}

TEST_CASE("copies and fills are judged as launches are") {
  Tiny p;
  p.alloc(M, "t", P0).persist("x").free("t").copy(M, "out", "t", "x").fill(M, "zero", w("t"));
  CHECK(eager(p) == Short{"use_after_free out", "use_after_free zero"});
}

TEST_CASE("a read of what nobody wrote since the allocation") {
  Tiny p;
  p.alloc(M, "t", P0).op(M, "part", {w("t", 0, 40)}).op(M, "use", {r("t")});
  const auto found = findings(p, Submission::eager);
  REQUIRE(in_short(found) == Short{"unwritten use"});
  CHECK(found[0].offset_bytes == 40);
  CHECK(found[0].size_bytes == kDefaultBytes - 40);
  Tiny whole;
  whole.alloc(M, "t", P0)
      .op(M, "one", {w("t", 0, 40)})
      .op(M, "two", {w("t", 40)})
      .op(M, "use", {r("t")});
  CHECK(eager(whole).empty());
}

TEST_CASE("an update reads, a write and a scratch do not") {
  const auto of = [](Operand o) {
    Tiny p;
    p.alloc(M, "t", P0).op(M, "k", {o});
    return eager(p);
  };
  CHECK(of(u("t")) == Short{"unwritten k"});
  CHECK(of(r("t")) == Short{"unwritten k"});
  CHECK(of(w("t")).empty());
  CHECK(of(tmp("t")).empty());
}

TEST_CASE("an update defines what it found undefined; scratch leaves it undefined") {
  Tiny p;
  p.alloc(M, "t", P0).op(M, "add", {u("t")}).op(M, "use", {r("t")});
  CHECK(eager(p) == Short{"unwritten add"});
  Tiny q;
  q.alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "work", {tmp("t")}).op(M, "use", {r("t")});
  CHECK(eager(q) == Short{"unwritten use"});
}

TEST_CASE("a new allocation of written memory is unwritten again") {
  Tiny p;
  p.alloc(M, "a", P0).op(M, "make", {w("a")}).free("a").alloc(M, "b", P0).op(M, "use", {r("b")});
  CHECK(eager(p) == Short{"unwritten use"});
}

TEST_CASE("each replay of a graph allocates anew: the last step's content does not count") {
  Tiny writes, reads_only;
  writes.alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "use", {r("t")});
  reads_only.alloc(M, "t", P0).op(M, "use", {r("t")});
  Steps steps;
  CHECK(steps.add(writes, Submission::graph).empty());
  CHECK(steps.add(writes, Submission::graph).empty());
  CHECK(steps.add(reads_only, Submission::graph) == Short{"unwritten use"});
}

TEST_CASE("persistent buffers are defined from the start, or from their first write") {
  Tiny p;
  p.persist("w").persist("kv", 0, false).op(M, "use", {r("w"), r("kv")});
  CHECK(eager(p) == Short{"unwritten use"});
  Tiny init, use;
  init.persist("w").persist("kv", 0, false).fill(M, "zero", w("kv"));
  use.persist("w").persist("kv", 0, false).op(M, "use", {r("kv")});
  Steps steps;
  CHECK(steps.add(init, Submission::eager).empty());
  CHECK(steps.add(use, Submission::eager).empty());
  steps.checker.sync_all();
  CHECK(steps.add(use, Submission::graph).empty());
}

TEST_CASE("KV ranges of a request are not judged by content here") {
  Tiny p;
  p.persist("kv", 0, false);
  Operand page = r("kv", 0, 16);
  page.request = 3;
  p.paged(M, "attn", "kv", {page});
  CHECK(eager(p).empty());
}

TEST_CASE("a read that finds another buffer's content, although ordered") {
  Tiny p;
  p.alloc(M, "old", P0).op(M, "make_old", {w("old")}).free("old");
  p.alloc(M, "new", P0).op(M, "make_new", {w("new")});
  p.op(M, "late", {w("old", 0, 16)});
  p.op(M, "use", {r("new")});
  const auto found = findings(p, Submission::eager);
  REQUIRE(in_short(found) == Short{"use_after_free late", "stale late,use"});
  CHECK(found[1].first.buffer == "old");
  CHECK(found[1].second.buffer == "new");
  CHECK(found[1].offset_bytes == 0);
  CHECK(found[1].size_bytes == 16);
  CHECK(found[1].first.generation == 1);
  CHECK(found[1].second.generation == 2);
}

TEST_CASE("a persistent buffer overwritten by a transient is stale; views of one another are not") {
  Tiny p;
  p.persist("ws", P0).alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "use", {r("ws")});
  CHECK(eager(p) == Short{"stale make,use"});
  Tiny views;
  views.persist("front", P0)
      .persist("back", P0 + 32)
      .op(M, "make", {w("front")})
      .op(M, "use", {r("back")});
  CHECK(eager(views).empty());
}

TEST_CASE("a read that races is reported once, as the race") {
  Tiny unwritten;
  unwritten.alloc(M, "t", P0).op(M, "use", {r("t")}).op(S, "make", {w("t")});
  CHECK(eager(unwritten) == Short{"race use,make"});
  Tiny stale;
  stale.alloc(M, "a", P0).free("a").alloc(M, "b", P0).op(M, "make", {w("b")});
  stale.op(S, "late", {w("a")}).op(M, "use", {r("b")});
  CHECK(eager(stale) == Short{"use_after_free late", "race make,late", "race late,use"});
}

TEST_CASE("a read whose pair is reported by another, wider buffer is not also stale") {
  Tiny p;
  p.persist("x").alloc(M, "a", P0, 16).free("a").alloc(M, "b", P0, 16).op(M, "make", {w("b")});
  p.join(S, M).op(S, "late", {w("a"), w("x")}).op(M, "use", {r("b"), r("x")});
  CHECK(eager(p) == Short{"use_after_free late", "race late,use"});
}

TEST_CASE("an access that leaves its buffer") {
  Tiny p;
  p.alloc(M, "t", P0, 64).alloc(M, "next", P0 + 64, 64).op(M, "fill", {w("t"), w("next")});
  p.op(S, "over", {w("t", 48, 32)});
  p.join(M, S);
  const auto found = findings(p, Submission::eager);
  REQUIRE(in_short(found) == Short{"foreign over", "race fill,over"});
  CHECK(found[0].offset_bytes == 64);
  CHECK(found[0].size_bytes == 16);
  CHECK(found[0].advice.find("leaves its buffer") != std::string::npos);
  CHECK(found[1].size_bytes == 16);  // inside the buffer
  Tiny far;
  far.persist("x")
      .op(M, "wrap", {w("x", UINT64_MAX - 8, 64)})
      .op(M, "big", {r("x", 8, UINT64_MAX - 1)});
  CHECK(eager(far) == Short{"foreign wrap", "foreign big"});
  Tiny edge;
  edge.persist("x").op(M, "k", {w("x", 63, 1), r("x", 64, 0)});
  CHECK(eager(edge).empty());
}

TEST_CASE("a freed persistent buffer stays freed over steps until it is allocated again") {
  Tiny frees, uses, again;
  frees.persist("ws").free("ws");
  uses.persist("ws").op(M, "use", {w("ws")});
  again.persist("ws");
  Command c;
  c.kind = CommandKind::allocate;
  c.buffer = BufferId::persistent(0);
  again.program.commands.push_back(c);
  again.op(M, "use", {w("ws")});
  Steps steps;
  CHECK(steps.add(frees, Submission::eager).empty());
  CHECK(steps.add(uses, Submission::eager) == Short{"use_after_free use"});
  CHECK(steps.add(again, Submission::eager).empty());
}

TEST_CASE("transients that alias in time but not in order are fine on one stream") {
  Tiny p;
  for (int i = 0; i < 5; ++i)
    p.alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "use", {r("t")}).free("t");
  CHECK(eager(p).empty());
  CHECK(graph(p).empty());
}

}  // namespace
}  // namespace redecode
