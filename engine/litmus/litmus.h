// engine/litmus/litmus.h - Litmus: a bug as a tiny stream program with the verdict a checker owes.
//
// Grammar, one line each; '#' starts a comment, blank lines are free:
//
//   scenario NAME
//   scope    graph | host | rank | kernel | value
//   persist  T @R [=ver]           long-lived buffer T in region R, with its initial content
//   async    A,B                   outside actors: they do not follow the host (a NIC, a rank)
//   ID ACTOR alloc T @R            allocator bookkeeping, in host order; a region may come back
//   ID ACTOR free T
//   ID ACTOR k NAME [r=OPERANDS] [w=OPERANDS]
//   ID ACTOR k~ NAME ...           what a PDL-launched kernel does before its dependency wait
//   ID ACTOR k! NAME ...           a kernel whose blocks wait for each other: all must be resident
//   ID ACTOR rec E                 event; each record is a generation of its own
//   ID ACTOR wait E                for the newest record before it; before any record no edge
//   ID H sync S                    the host waits for a stream
//   ID H bake P=T                  freezes the address of T into a graph, used later as *P
//   expect   RACE ID,ID | PROV ID | UNINIT ID | UAF ID | NUM | LIVE | QUIET
//   fix      + ID OP...            adds an op; fix - ID drops one; fix = ID OP... replaces one
//
//   OPERANDS  T, T:ver, T[row], T[row]:ver or *P..., joined by commas. On a read, ver is the
//             content meant to be seen; on a write, what is produced.
//   ACTOR     H is the host; any other word is a stream, 0 being M if there is an M.
//   ID        a decimal number; ops run in order of their ids.
//
// Rows of a region with equal names are the same bytes; a buffer without a row is all of its
// region. Kernels whose names hold resident, cooperative, grid_barrier or grid_sync count as k!.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

// 7.5 as whole 7 and 500,000,000 billionths.
struct DecimalId {
  uint32_t whole = 0;
  uint32_t billionths = 0;
  auto operator<=>(const DecimalId&) const = default;
};
std::string to_text(DecimalId id);

enum class LitmusVerb : uint8_t {
  alloc,
  free,
  kernel,
  kernel_before_wait,
  kernel_all_resident,
  record,
  wait,
  sync,
  bake,
};

struct LitmusOperand {
  std::string buffer;   // or the alias of a baked address
  std::string row;      // empty: all of it
  std::string version;  // empty: not stated
  bool baked = false;
  bool operator==(const LitmusOperand&) const = default;
};

struct LitmusOp {
  DecimalId id;
  std::string actor;
  LitmusVerb verb = LitmusVerb::kernel;
  std::string name;    // kernel, buffer, event, stream or alias
  std::string region;  // alloc
  std::string target;  // bake: whose address
  std::vector<LitmusOperand> reads, writes;
  uint32_t line = 0;
};

struct LitmusPersist {
  std::string name, region, version;  // version empty: never written
  uint32_t line = 0;
};

enum class LitmusVerdict : uint8_t { race, prov, uninit, uaf, num, live, quiet };

struct LitmusExpect {
  LitmusVerdict verdict = LitmusVerdict::quiet;
  DecimalId first, second;  // second: races only
  auto operator<=>(const LitmusExpect&) const = default;
};
std::string to_text(const LitmusExpect& expect);  // "RACE 7,10"

enum class LitmusChange : uint8_t { add, drop, replace };

struct LitmusFix {
  LitmusChange change = LitmusChange::add;
  LitmusOp op;  // drop: its id only
};

struct Litmus {
  std::string name, scope;
  std::vector<LitmusPersist> persists;
  std::vector<std::string> outside;   // async actors
  std::vector<LitmusOp> ops;          // by ascending id
  std::vector<LitmusExpect> expects;  // in file order
  std::vector<LitmusFix> fixes;
};

namespace litmus_limits {
inline constexpr size_t kFileBytes = size_t{1} << 20;
inline constexpr size_t kOps = 65'536;
inline constexpr size_t kNameBytes = 128;
inline constexpr size_t kOperands = 256;  // of an op
inline constexpr size_t kStreams = 16;
}  // namespace litmus_limits

// `name` stands in errors: Error corrupt "NAME:LINE:COLUMN: what, and what is wanted"; limit where
// one of litmus_limits is passed. What is parsed is well formed: ids are unique, names are known
// where they are used, expected ids and fixed ids exist.
Litmus parse_litmus(std::string_view text, const std::string& name);
// Errors: as parse_litmus; missing.
Litmus load_litmus(const std::string& path);

// `text` in one style: aligned ids and actors, single spaces, every comment kept. Formatting twice
// gives the same text. Errors: as parse_litmus.
std::string format_litmus(std::string_view text, const std::string& name);

// The program after its fix lines. Errors: corrupt, with the line, when the result is not well
// formed.
Litmus with_fixes(const Litmus& litmus);

}  // namespace redecode
