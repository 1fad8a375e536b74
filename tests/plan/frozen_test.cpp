// check_frozen: what a captured program holds that this step would need otherwise.
#include "tests/memory/ends_with_bug.h"
#include "tests/plan/tiny_program.h"

namespace redecode {
namespace {

std::vector<Finding> frozen(Tiny& captured, Tiny& needed) {
  std::vector<Finding> out;
  check_frozen(41, captured.done(), needed.done(), out);
  return out;
}

Tiny rope(int64_t rows, int64_t position, int64_t split) {
  Tiny p;
  p.persist("q").op(M, "norm", {u("q")}).layer(1);
  p.op(S, "rope", {u("q")}).layer(2);
  p.arg(rows, ArgKind::shape).arg(position, ArgKind::step_value).arg(split, ArgKind::reduction);
  return p;
}

TEST_CASE("a step's value in a captured argument is named with both values") {
  Tiny captured = rope(8, 0, 64), needed = rope(8, 41, 64);
  const auto found = frozen(captured, needed);
  REQUIRE(in_short(found) == Short{"frozen rope"});
  CHECK(found[0].step == 41);
  CHECK(found[0].layer == 2);
  CHECK(found[0].first.stream == 1);
  CHECK(found[0].first.command == 1);
  CHECK(found[0].second.op.empty());
  CHECK(found[0].advice ==
        "`rope` holds 0 of capture time as argument 1; this step needs 41: pass it through memory");
}

TEST_CASE("equal values, shapes and reductions are no finding") {
  Tiny captured = rope(8, 7, 64), same = rope(8, 7, 64), other_shape = rope(9, 7, 128);
  CHECK(frozen(captured, same).empty());
  CHECK(frozen(captured, other_shape).empty());
}

TEST_CASE("an operand's captured offset and buffer are named; ranges behind memory are free") {
  const auto append = [](uint64_t offset, const char* buffer) {
    Tiny p;
    p.persist("kv", 0, true, 4096).persist("other");
    p.op(M, "append", {w(buffer, offset, 16)});
    return p;
  };
  Tiny captured = append(0, "kv"), moved = append(1024, "kv"), elsewhere = append(0, "other");
  const auto offset = frozen(captured, moved);
  REQUIRE(in_short(offset) == Short{"frozen append"});
  CHECK(offset[0].first.buffer == "kv");
  CHECK(offset[0].advice.find("offset 0 of `kv`") != std::string::npos);
  CHECK(offset[0].advice.find("needs 1024") != std::string::npos);
  const auto buffer = frozen(captured, elsewhere);
  REQUIRE(in_short(buffer) == Short{"frozen append"});
  CHECK(buffer[0].advice.find("`kv`") != std::string::npos);
  CHECK(buffer[0].advice.find("`other`") != std::string::npos);

  const auto paged = [](uint64_t page) {
    Tiny p;
    p.persist("kv", 0, true, 4096).paged(M, "attn", "kv", {r("kv", page * 64, 64)});
    return p;
  };
  Tiny page_1 = paged(1), page_9 = paged(9);
  CHECK(frozen(page_1, page_9).empty());
}

TEST_CASE("one finding a command, however much differs in it") {
  const auto program = [](int64_t base) {
    Tiny p;
    p.persist("x");
    for (const char* op : {"a", "b"})
      p.op(M, op, {u("x")}).arg(base, ArgKind::step_value).arg(base + 1, ArgKind::step_value);
    return p;
  };
  Tiny captured = program(0), needed = program(5);
  const auto found = frozen(captured, needed);
  REQUIRE(in_short(found) == Short{"frozen a", "frozen b"});
  CHECK(found[0].advice.find("and 1 more") != std::string::npos);
}

TEST_CASE("programs with other command lists are a bug") {
  Tiny captured = rope(8, 0, 64), shorter, other;
  shorter.persist("q").op(M, "norm", {u("q")});
  other.persist("q").op(M, "norm", {u("q")}).rec(S, 0);
  std::vector<Finding> out;
  CHECK(ends_with_bug([&] { check_frozen(0, captured.done(), shorter.done(), out); }));
  CHECK(ends_with_bug([&] { check_frozen(0, captured.done(), other.done(), out); }));
}

}  // namespace
}  // namespace redecode
