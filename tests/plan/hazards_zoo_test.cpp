// Public bug reports as tiny programs: what is found before the fix, and nothing after it.
#include <functional>

#include "tests/plan/tiny_program.h"

namespace redecode {
namespace {

using Make = std::function<Tiny(bool fixed)>;

// In a graph and eager: the structure is at fault, not the way it is submitted.
void check_both(const Make& make, const Short& expected) {
  Tiny broken = make(false), fixed = make(true);
  CHECK(graph(broken) == expected);
  CHECK(eager(broken) == expected);
  CHECK(graph(fixed) == Short{});
  CHECK(eager(fixed) == Short{});
}
void check_eager(const Make& make, const Short& expected) {
  Tiny broken = make(false), fixed = make(true);
  CHECK(eager(broken) == expected);
  CHECK(eager(fixed) == Short{});
}

TEST_CASE(
    "A1: a side stream's tensor, read by the main stream, goes back to the side stream early") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("x").rec(M, 0).wait(S, 0);
        p.alloc(S, "k8", P0).op(S, "precompute", {r("x"), w("k8")}).rec(S, 1).wait(M, 1);
        p.op(M, "consume", {r("k8")});
        if (fixed) p.join(S, M);
        p.free("k8").alloc(S, "scratch2", P0);
        return p.op(S, "next_layer", {r("x"), w("scratch2")}).rec(S, 2).wait(M, 2);
      },
      {"race consume,next_layer"});
}

TEST_CASE("A1m: the main stream's tensor is freed while a side stream still reads it") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.alloc(M, "hidden", P0).op(M, "proj", {w("hidden")}).rec(M, 0).wait(S, 0);
        p.op(S, "indexer", {r("hidden")});
        if (fixed) p.join(M, S);
        p.free("hidden").alloc(M, "y", P0).op(M, "gemm", {w("y")});
        return p.rec(S, 1).wait(M, 1).op(M, "attn", {r("y")});
      },
      {"race indexer,gemm"});
}

TEST_CASE("A1m by another fix: record_stream, after which the pool places y elsewhere") {
  Tiny p;
  p.alloc(M, "hidden", P0).op(M, "proj", {w("hidden")}).rec(M, 0).wait(S, 0);
  p.op(S, "indexer", {r("hidden")}).record_stream("hidden", S).free("hidden");
  p.alloc(M, "y", P1).op(M, "gemm", {w("y")}).rec(S, 1).wait(M, 1).op(M, "attn", {r("y")});
  CHECK(graph(p).empty());
}

TEST_CASE("A3: a lost record_stream: read after its owner let go, then overwritten") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("x").join(S, M).alloc(S, "shared_out", P1);
        p.op(S, "shared_expert", {r("x"), w("shared_out")}).join(M, S);
        if (!fixed) p.free("shared_out");
        p.op(M, "fuse_add", {r("shared_out")});
        if (fixed) p.join(S, M).free("shared_out");
        return p.alloc(S, "next_out", P1).op(S, "shared_next", {r("x"), w("next_out")});
      },
      {"use_after_free fuse_add", "race fuse_add,shared_next"});
}

TEST_CASE("A6: three workspaces on one region, sized by their maximum") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("x").persist("scr_indexer", P2).persist("scr_topk", P2).persist("scr_comp", P2);
        p.join(S, M).op(S, "indexer_q", {r("x"), w("scr_indexer")});
        if (fixed) p.op(S, "score", {r("scr_indexer")}).join(M, S);
        p.op(M, "compressor", {r("x"), w("scr_comp")});
        if (!fixed) p.op(S, "score", {r("scr_indexer")}).join(M, S);
        return p;
      },
      {"race indexer_q,compressor", "race compressor,score"});
}

TEST_CASE("B1: the routed path writes in place what the shared expert still reads") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("h").persist("clone", 0, false);
        if (fixed) p.copy(M, "clone", "h", "clone");
        p.join(S, M).op(S, "shared_mlp", {r(fixed ? "clone" : "h")});
        return p.op(M, "routed_inplace", {u("h")}).join(M, S).op(M, "add", {r("h")});
      },
      {"race shared_mlp,routed_inplace"});
}

TEST_CASE("B2: a recycled event: the wait binds to the wrong record") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("x").persist("idx", 0, false).rec(M, 0).wait(S, 0);
        p.op(S, "indexer", {r("x"), w("idx")});
        p.rec(fixed ? S : M, 0).wait(M, 0);
        return p.op(M, "attn", {r("idx")});
      },
      {"race indexer,attn"});
}

TEST_CASE("B4: set-up copies on a stream of their own") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        return p.persist("src")
            .persist("off", 0, false)
            .copy(fixed ? M : S, "setup", "src", "off")
            .op(M, "kernel", {r("off")});
      },
      {"race setup,kernel"});
}

TEST_CASE("C1: a workspace that moved: a captured kernel writes through the dead address") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("a").alloc(M, "ws", P0).op(M, "capture_gemm", {r("a"), tmp("ws")});
        if (!fixed) p.free("ws");
        p.alloc(M, "meta", fixed ? P1 : P0).op(M, "build_meta", {w("meta")});
        return p.op(M, "replay_gemm", {r("a"), w("ws")}).op(M, "use_meta", {r("meta")});
      },
      {"use_after_free replay_gemm", "stale replay_gemm,use_meta"});
}

TEST_CASE("C2: a lasting workspace allocated on top of a freed tensor of the graph") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.persist("src").alloc(M, "t", P0).op(M, "double", {r("src"), w("t")});
        p.op(M, "sum", {r("t")});
        if (!fixed) p.free("t");
        p.alloc(M, "ws", fixed ? P1 : P0).fill(M, "zero_once", w("ws"));
        return p.op(M, "replay_double", {r("src"), w("t")}).op(M, "replay_splitk", {r("ws")});
      },
      {"use_after_free replay_double", "stale replay_double,replay_splitk"});
}

TEST_CASE("F2: a flag whose awaited value is frozen lets the second round through at once") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("data").op(S, "put_round1", {w("data")}).rec(S, 7).wait(M, 7);
        p.op(M, "reduce1", {r("data")}).rec(M, 9).wait(S, 9).op(S, "put_round2", {w("data")});
        p.rec(S, 8).wait(M, fixed ? 8 : 7);
        return p.op(M, "reduce2", {r("data")});
      },
      {"race put_round2,reduce2"});
}

TEST_CASE(
    "G1: pinned input tensors refilled while the copy of the step before may still read them") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("pinned").persist("dev").host("fill_n", {w("pinned")});
        p.copy(M, "h2d_n", "pinned", "dev");
        if (fixed) p.sync(M);
        return p.host("fill_n1", {w("pinned")});
      },
      {"race h2d_n,fill_n1"});
}

TEST_CASE("G2: the host reads a pinned copy target without waiting") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("dev").persist("pinned").copy(M, "d2h", "dev", "pinned");
        if (fixed) p.rec(M, 0).wait(kHost, 0);
        return p.host("build_meta", {r("pinned")});
      },
      {"race d2h,build_meta"});
}

TEST_CASE("H2: blocks of an ended request become a transfer's target under a write in flight") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("kv", 0, true, 256).op(M, "write_req_r", {w("kv", 64, 64)});
        if (fixed) p.join(C, M);
        return p.op(C, "rdma_fill_req_q", {w("kv", 64, 64)});
      },
      {"race write_req_r,rdma_fill_req_q"});
}

TEST_CASE("H4: a request's row is rewritten for the next one while the forward pass reads it") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("rows").join(S, M).op(S, "forward", {r("rows", 8, 8)});
        if (fixed) p.join(M, S);
        return p.op(M, "prepare_next", {w("rows", 8, 8)});
      },
      {"race forward,prepare_next"});
}

TEST_CASE("H5: a store thread reads blocks that the scheduler has given away") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.persist("kv").persist("store");
        if (fixed) p.copy(C, "store_thread", "kv", "store").join(M, C);
        p.op(M, "new_request", {w("kv")});
        if (!fixed) p.copy(C, "store_thread", "kv", "store");
        return p;
      },
      {"race new_request,store_thread"});
}

TEST_CASE("J1: a fast rank reuses its block while a slow peer still reads it") {
  check_eager(
      [](bool fixed) {
        Tiny p;
        p.alloc(M, "input", P0).op(M, "gemm", {w("input")}).rec(M, 0).wait(S3, 0);
        p.op(S3, "peer_read", {r("input")});
        if (fixed) p.join(M, S3);
        return p.free("input").alloc(M, "next", P0).op(M, "next_kernel", {w("next")});
      },
      {"race peer_read,next_kernel"});
}

TEST_CASE("N1: a grid padded past what the plan initialised") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.alloc(M, "plan", P0, 132).op(M, "make_plan", {w("plan", 0, 2)});
        return p.op(M, "attn", {r("plan", 0, fixed ? 2 : 132)});
      },
      {"unwritten attn"});
}

TEST_CASE("N2: draft KV never written for positions that came from a prefix hit") {
  check_both(
      [](bool fixed) {
        Tiny p;
        p.alloc(M, "draft_kv", P0, 128);
        if (fixed) p.fill(M, "zero_prefix", w("draft_kv", 0, 64));
        p.op(M, "draft_extend", {w("draft_kv", 64, 64)});
        return p.op(M, "draft_attn", {r("draft_kv")});
      },
      {"unwritten draft_attn"});
}

TEST_CASE("O1: quiet where the side stream waits before it allocates its own block again") {
  Tiny p;
  p.alloc(S, "b", P0).op(S, "allgather", {w("b")}).rec(S, 0).wait(M, 0).op(M, "use", {r("b")});
  p.free("b").rec(M, 1).wait(S, 1).alloc(S, "b2", P0).op(S, "allgather2", {w("b2")});
  CHECK(eager(p).empty());
  CHECK(graph(p).empty());
}

TEST_CASE("O2: quiet where graphs share a pool and never run at once") {
  const auto bucket = [](const char* out) {
    Tiny p;
    p.persist("out1", 0, false).persist("out2", 0, false);
    p.alloc(M, "t", P0).op(M, "make", {w("t")}).op(M, "output", {r("t"), w(out)}).free("t");
    return p;
  };
  Tiny one = bucket("out1"), two = bucket("out2"), reader;
  reader.persist("out1").persist("out2").op(M, "read", {r("out1")});
  Steps steps;
  for (int i = 0; i < 3; ++i) {
    CHECK(steps.add(two, Submission::graph).empty());
    CHECK(steps.add(one, Submission::graph).empty());
    CHECK(steps.add(reader, Submission::eager).empty());
  }
}

TEST_CASE("O4: quiet where every reader of a graph's output ends before the next replay") {
  Tiny p, reader;
  p.persist("out").op(M, "replay", {w("out")});
  reader.persist("out").op(M, "read", {r("out")});
  Steps steps;
  for (int i = 0; i < 3; ++i) {
    CHECK(steps.add(p, Submission::graph).empty());
    CHECK(steps.add(reader, Submission::eager).empty());
  }
  Tiny side_reader;  // and not where the reader sits on a stream of its own
  side_reader.persist("out").join(S, M).op(S, "read", {r("out")});
  CHECK(steps.add(side_reader, Submission::eager).empty());
  CHECK(steps.add(p, Submission::graph) == Short{"race read,replay"});
}

}  // namespace
}  // namespace redecode
