#include "traces/program.h"

#include "traces/check.h"

namespace redecode {
namespace {

constexpr size_t kMaxNames = size_t{1} << 16;

std::string stream_text(StreamId stream) {
  return stream == kHost ? std::string("host") : "s" + std::to_string(stream);
}

char letter(Access access) {
  switch (access) {
    case Access::none:
      return '-';
    case Access::read:
      return 'r';
    case Access::write:
      return 'w';
    case Access::update:
      return 'u';
    case Access::scratch:
      return 's';
  }
  return '?';
}

std::string_view word(ArgKind kind) {
  switch (kind) {
    case ArgKind::shape:
      return "shape";
    case ArgKind::step_value:
      return "step";
    case ArgKind::reduction:
      return "reduction";
    case ArgKind::page_stride:
      return "stride";
  }
  return "?";
}

std::string region_text(const Program& program, const Region& region) {
  std::string out(1, letter(region.access));
  out += ':';
  out += region.buffer.valid() ? program.name_of(region.buffer) : std::string_view("?");
  out += '+' + std::to_string(region.offset_bytes) + '/' + std::to_string(region.size_bytes);
  if (region.row_stride_bytes != 0) out += '*' + std::to_string(region.row_stride_bytes);
  if (region.request != UINT32_MAX) out += '@' + std::to_string(region.request);
  return out;
}

std::string command_text(const Program& program, const Command& c) {
  std::string out(to_text(c.kind));
  out += ' ' + stream_text(c.stream) + " L" + std::to_string(c.layer) + ' ';
  out += (*program.names)[c.name];
  switch (c.kind) {
    case CommandKind::record:
    case CommandKind::wait:
      out += " e" + std::to_string(c.event);
      break;
    case CommandKind::allocate:
      out += ' ' + std::string(program.name_of(c.buffer)) + '/' +
             std::to_string(program.size_of(c.buffer));
      break;
    case CommandKind::free:
    case CommandKind::record_stream:
      out += ' ' + std::string(program.name_of(c.buffer));
      break;
    default:
      break;
  }
  for (const Region& region : program.operands_of(c)) out += ' ' + region_text(program, region);
  if (c.touched_count != 0) {
    out += " touches";
    for (const Region& region : program.touched_of(c)) out += ' ' + region_text(program, region);
  }
  for (const Arg& arg : program.args_of(c)) {
    out += ' ';
    out += word(arg.kind);
    out += '=' + std::to_string(arg.value);
  }
  return out;
}

}  // namespace

NameId NameTable::intern(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<NameId>(i);
  REDECODE_CHECK_OP(names.size(), <, kMaxNames);
  names.emplace_back(name);
  return static_cast<NameId>(names.size() - 1);
}

std::string_view to_text(CommandKind kind) {
  switch (kind) {
    case CommandKind::launch:
      return "launch";
    case CommandKind::copy:
      return "copy";
    case CommandKind::fill:
      return "fill";
    case CommandKind::host:
      return "host";
    case CommandKind::record:
      return "record";
    case CommandKind::wait:
      return "wait";
    case CommandKind::sync:
      return "sync";
    case CommandKind::allocate:
      return "allocate";
    case CommandKind::free:
      return "free";
    case CommandKind::record_stream:
      return "record_stream";
  }
  return "unknown";
}

std::string_view to_text(Access access) {
  switch (access) {
    case Access::none:
      return "none";
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::update:
      return "update";
    case Access::scratch:
      return "scratch";
  }
  return "unknown";
}

std::string dump(const Program& program) {
  REDECODE_CHECK(program.names != nullptr);
  std::string out;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    out += std::to_string(i) + ' ' + command_text(program, program.commands[i]) + '\n';
  }
  return out;
}

}  // namespace redecode
