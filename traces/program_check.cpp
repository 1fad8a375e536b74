#include "traces/limits.h"
#include "traces/program_codec.h"

namespace redecode {
namespace {

bool exists(const Program& program, BufferId id) {
  const size_t count = id.is_persistent() ? program.persistents->size() : program.transients.size();
  return id.valid() && id.index() < count;
}

bool inside(uint64_t first, uint64_t count, size_t table) {
  return first <= table && count <= table - first;
}

std::string check_tables(const Program& p) {
  const size_t names = p.names->names.size();
  for (const PersistentBuffer& b : *p.persistents) {
    if (b.name >= names) return "a persistent buffer without a name";
    if (b.size_bytes > limits::kBufferBytes) return "a persistent buffer is too large";
  }
  for (const TransientBuffer& b : p.transients) {
    if (b.name >= names) return "a transient buffer without a name";
    if (b.size_bytes > limits::kBufferBytes) return "a transient buffer is too large";
    if (b.stream >= p.stream_count) return "a transient buffer of an unknown stream";
  }
  return {};
}

std::string check_region(const Program& p, const Region& r) {
  if (!exists(p, r.buffer)) return "a region of an unknown buffer";
  const uint64_t size_bytes = p.size_of(r.buffer);
  if (r.offset_bytes > size_bytes || r.size_bytes > size_bytes - r.offset_bytes)
    return "a region reaches over the end of " + std::string(p.name_of(r.buffer));
  return {};
}

std::string check_command(const Program& p, const Command& c) {
  if (c.name >= p.names->names.size()) return "no name";
  if (c.stream >= p.stream_count && c.stream != kHost) return "unknown stream";
  if (!inside(c.first_region, c.region_count, p.regions.size())) return "regions out of range";
  if (!inside(c.first_touched, c.touched_count, p.touched.size())) return "ranges out of range";
  if (!inside(c.first_arg, c.arg_count, p.args.size())) return "arguments out of range";
  switch (c.kind) {
    case CommandKind::record:
    case CommandKind::wait:
      return c.event < p.event_count ? "" : "unknown event";
    case CommandKind::allocate:
    case CommandKind::free:
    case CommandKind::record_stream:
      return exists(p, c.buffer) ? "" : "unknown buffer";
    case CommandKind::copy:
      if (c.region_count != 2) return "a copy without two regions";
      return p.regions[c.first_region].size_bytes == p.regions[c.first_region + 1].size_bytes
                 ? ""
                 : "a copy of unequal sizes";
    case CommandKind::fill:
      return c.region_count == 1 && c.arg_count == 1 ? "" : "a fill without a region and a byte";
    default:
      return {};
  }
}

}  // namespace

std::string why_ill_formed(const Program& program) {
  if (program.names == nullptr || program.persistents == nullptr) return "no tables";
  if (program.stream_count == 0 || program.stream_count > kMaxStreams)
    return std::to_string(program.stream_count) + " streams";
  if (program.event_count > 65536) return std::to_string(program.event_count) + " events";
  if (std::string reason = check_tables(program); !reason.empty()) return reason;
  for (const auto* regions : {&program.regions, &program.touched})
    for (const Region& region : *regions)
      if (std::string reason = check_region(program, region); !reason.empty()) return reason;
  for (size_t i = 0; i < program.commands.size(); ++i)
    if (std::string reason = check_command(program, program.commands[i]); !reason.empty())
      return "command " + std::to_string(i) + ": " + reason;
  return {};
}

}  // namespace redecode
