// traces/program.h - Program: the ordered commands of one step, with buffers instead of addresses.
//
// A lowered step, a litmus file and a graph captured from another process are all Programs, so one
// checker, one explorer and one report serve all three. A program is a value: flat arrays, no
// pointers into anything but the shared tables of names and persistent buffers.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

using StreamId = uint8_t;                // 0 is the main stream
inline constexpr StreamId kHost = 0xff;  // the host as an actor: synchronous, in program order
inline constexpr uint32_t kMaxStreams = 16;
using NameId = uint16_t;
using KernelId = uint16_t;
using EventId = uint16_t;
inline constexpr KernelId kNoKernel = 0xffff;  // a host command that only declares what it touches

// A buffer of a program. Persistent buffers (weights, KV pages, static inputs) outlive the step and
// have one id in all programs of a model; transients are allocated and freed by the program.
struct BufferId {
  static constexpr uint32_t kPersistentBit = 0x80000000u;
  uint32_t value = UINT32_MAX;
  static constexpr BufferId persistent(uint32_t index) { return {index | kPersistentBit}; }
  static constexpr BufferId transient(uint32_t index) { return {index}; }
  constexpr bool valid() const { return value != UINT32_MAX; }
  constexpr bool is_persistent() const { return (value & kPersistentBit) != 0; }
  constexpr uint32_t index() const { return value & ~kPersistentBit; }
  bool operator==(const BufferId&) const = default;
};

enum class Access : uint8_t {
  none,     // the address is passed, the bytes touched are listed apart (paged buffers)
  read,     // content must be defined
  write,    // content need not be defined before, is defined after
  update,   // read and write
  scratch,  // written then read by the command itself; undefined before and after
};
constexpr bool reads(Access a) { return a == Access::read || a == Access::update; }
constexpr bool writes(Access a) {
  return a == Access::write || a == Access::update || a == Access::scratch;
}

// A byte range of a buffer and how it is touched.
struct Region {
  BufferId buffer;
  Access access = Access::none;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint32_t row_stride_bytes = 0;  // bytes a batch row where the range is [rows, ...], else 0
  uint32_t request = UINT32_MAX;  // whose KV page this is meant to be; UINT32_MAX: not a KV range
  uint32_t version = 0;           // read: the content meant to be seen; write: the one made; 0: any
  bool operator==(const Region&) const = default;
};

// What a scalar argument is, so that a value frozen into a graph can be told from a shape.
enum class ArgKind : uint8_t {
  shape,        // follows from model and bucket: may be frozen
  step_value,   // follows from this step: must come from memory, never be frozen
  reduction,    // fixes a reduction order: must not follow from the batch
  page_stride,  // bytes from page to page of a paged operand: must be its page size
};

// A scalar argument: an integer, or a float's bits.
struct Arg {
  int64_t value = 0;
  ArgKind kind = ArgKind::shape;
  bool operator==(const Arg&) const = default;
};

enum class CommandKind : uint8_t {
  launch,         // kernel over regions
  copy,           // regions[0] is read, regions[1] written, equal sizes
  fill,           // regions[0] is written with args[0] as a byte
  host,           // the host itself touches the regions, now; without a kernel it only declares
                  // them, or with args[0] fills regions[0] as `fill` does
  record,         // event
  wait,           // event: a wait before any record is no edge
  sync,           // the host waits for the stream
  allocate,       // buffer, on stream
  free,           // buffer; host-time
  record_stream,  // buffer is used by stream: its free is deferred until that use is done
};

struct Command {
  CommandKind kind = CommandKind::launch;
  StreamId stream = 0;
  KernelId kernel = 0;  // launch
  NameId name = 0;      // op name for reports
  uint16_t layer = 0;
  EventId event = 0;         // record, wait
  bool before_wait = false;  // launch: what a PDL-launched kernel does before its dependency wait
  bool needs_all_blocks = false;  // launch: its blocks wait for each other, all must be resident
  BufferId buffer;                // allocate, free, record_stream
  uint32_t first_region = 0, region_count = 0;    // operands, in kernel order
  uint32_t first_touched = 0, touched_count = 0;  // exact ranges behind Access::none operands
  uint32_t first_arg = 0, arg_count = 0;
  bool operator==(const Command&) const = default;
};

// Strings of a model, shared by all of its programs.
struct NameTable {
  std::vector<std::string> names;
  NameId intern(std::string_view name);
  std::string_view operator[](NameId id) const { return names[id]; }
};

struct PersistentBuffer {
  NameId name = 0;
  uint64_t size_bytes = 0;
  uint64_t page_bytes = 0;  // of a paged KV buffer, true geometry; else 0
  bool written = true;      // content is defined before the first step
  uint32_t version = 0;     // of that content; 0: not stated
};

struct TransientBuffer {
  NameId name = 0;
  uint16_t layer = 0;
  StreamId stream = 0;  // owner: the free list it comes from and returns to
  uint64_t size_bytes = 0;
  bool operator==(const TransientBuffer&) const = default;
};

struct Program {
  std::shared_ptr<const NameTable> names;
  std::shared_ptr<const std::vector<PersistentBuffer>> persistents;
  std::vector<TransientBuffer> transients;
  std::vector<Command> commands;
  std::vector<Region> regions;
  std::vector<Region> touched;
  std::vector<Arg> args;
  uint32_t stream_count = 1;
  uint32_t event_count = 0;
  uint32_t outside_streams = 0;  // bit mask: actors that do not follow the host (a NIC, a rank)

  bool is_outside(StreamId stream) const {
    return stream < kMaxStreams && (outside_streams >> stream & 1) != 0;
  }
  std::span<const Region> operands_of(const Command& c) const {
    return {regions.data() + c.first_region, c.region_count};
  }
  std::span<const Region> touched_of(const Command& c) const {
    return {touched.data() + c.first_touched, c.touched_count};
  }
  std::span<const Arg> args_of(const Command& c) const {
    return {args.data() + c.first_arg, c.arg_count};
  }
  std::string_view name_of(BufferId id) const {
    return (
        *names)[id.is_persistent() ? (*persistents)[id.index()].name : transients[id.index()].name];
  }
  uint64_t size_of(BufferId id) const {
    return id.is_persistent() ? (*persistents)[id.index()].size_bytes
                              : transients[id.index()].size_bytes;
  }
};

std::string_view to_text(CommandKind kind);
std::string_view to_text(Access access);

// One line a command, for people and for golden tests:
// "12 launch s3 L1 indexer.logits r:index_q+0/1024 w:index_logits+0/256".
std::string dump(const Program& program);

}  // namespace redecode
