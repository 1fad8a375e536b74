#include "traces/program_codec.h"

#include "traces/check.h"
#include "traces/little_endian.h"
#include "traces/schema/program.capnp.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

schema::CommandKind to_schema(CommandKind kind) { return static_cast<schema::CommandKind>(kind); }
static_assert(static_cast<int>(schema::CommandKind::RECORD_STREAM) ==
              static_cast<int>(CommandKind::record_stream));
static_assert(static_cast<int>(schema::CommandKind::SYNC) == static_cast<int>(CommandKind::sync));
static_assert(static_cast<int>(schema::ArgKind::PAGE_STRIDE) ==
              static_cast<int>(ArgKind::page_stride));

CommandKind from_schema(schema::CommandKind kind) {
  if (kind > schema::CommandKind::RECORD_STREAM)
    codec::unknown_enumerant("command kind", static_cast<unsigned>(kind));
  return static_cast<CommandKind>(kind);
}

ArgKind from_schema(schema::ArgKind kind) {
  if (kind > schema::ArgKind::PAGE_STRIDE)
    codec::unknown_enumerant("argument kind", static_cast<unsigned>(kind));
  return static_cast<ArgKind>(kind);
}

unsigned count(size_t size, uint64_t cap, const char* what) {
  limits::check(size, cap, what);
  return static_cast<unsigned>(size);
}

void write(const Region& r, schema::Region::Builder out) {
  out.setBuffer(r.buffer.value);
  out.setAccess(codec::to_schema(r.access));
  out.setOffset(r.offset_bytes);
  out.setSize(r.size_bytes);
  out.setRowStride(r.row_stride_bytes);
  out.setRequest(r.request);
  out.setVersion(r.version);
}

Region read(schema::Region::Reader in) {
  return {BufferId{in.getBuffer()}, codec::from_schema(in.getAccess()),
          in.getOffset(),           in.getSize(),
          in.getRowStride(),        in.getRequest(),
          in.getVersion()};
}

void write(const Command& c, schema::Command::Builder out) {
  out.setKind(to_schema(c.kind));
  out.setStream(c.stream);
  out.setKernel(c.kernel);
  out.setName(c.name);
  out.setLayer(c.layer);
  out.setEvent(c.event);
  out.setBuffer(c.buffer.value);
  out.setFirstRegion(c.first_region);
  out.setRegionCount(c.region_count);
  out.setFirstTouched(c.first_touched);
  out.setTouchedCount(c.touched_count);
  out.setFirstArg(c.first_arg);
  out.setArgCount(c.arg_count);
  out.setBeforeWait(c.before_wait);
  out.setNeedsAllBlocks(c.needs_all_blocks);
}

Command read(schema::Command::Reader in) {
  Command c;
  c.kind = from_schema(in.getKind());
  c.stream = in.getStream();
  c.kernel = in.getKernel();
  c.name = in.getName();
  c.layer = in.getLayer();
  c.event = in.getEvent();
  c.buffer = BufferId{in.getBuffer()};
  c.first_region = in.getFirstRegion();
  c.region_count = in.getRegionCount();
  c.first_touched = in.getFirstTouched();
  c.touched_count = in.getTouchedCount();
  c.first_arg = in.getFirstArg();
  c.arg_count = in.getArgCount();
  c.before_wait = in.getBeforeWait();
  c.needs_all_blocks = in.getNeedsAllBlocks();
  return c;
}

void write_buffers(const Program& program, schema::Program::Builder out) {
  const auto& persistents = *program.persistents;
  auto p = out.initPersistents(count(persistents.size(), limits::kBuffers, "persistent buffers"));
  for (unsigned i = 0; i < p.size(); ++i) {
    p[i].setName(persistents[i].name);
    p[i].setSize(persistents[i].size_bytes);
    p[i].setPageBytes(persistents[i].page_bytes);
    p[i].setWritten(persistents[i].written);
    p[i].setVersion(persistents[i].version);
  }
  auto t =
      out.initTransients(count(program.transients.size(), limits::kBuffers, "transient buffers"));
  for (unsigned i = 0; i < t.size(); ++i) {
    t[i].setName(program.transients[i].name);
    t[i].setLayer(program.transients[i].layer);
    t[i].setStream(program.transients[i].stream);
    t[i].setSize(program.transients[i].size_bytes);
  }
}

void write(const Program& program, schema::Program::Builder out) {
  const auto& names = program.names->names;
  auto n = out.initNames(count(names.size(), limits::kNames, "names"));
  for (unsigned i = 0; i < n.size(); ++i)
    n.set(i, codec::text(names[i], limits::kNameBytes, "bytes of a name"));
  write_buffers(program, out);
  auto commands = out.initCommands(count(program.commands.size(), limits::kCommands, "commands"));
  for (unsigned i = 0; i < commands.size(); ++i) write(program.commands[i], commands[i]);
  auto regions = out.initRegions(count(program.regions.size(), limits::kRegions, "regions"));
  for (unsigned i = 0; i < regions.size(); ++i) write(program.regions[i], regions[i]);
  auto touched = out.initTouched(count(program.touched.size(), limits::kRegions, "regions"));
  for (unsigned i = 0; i < touched.size(); ++i) write(program.touched[i], touched[i]);
  auto args = out.initArgs(count(program.args.size(), limits::kRegions, "arguments"));
  for (unsigned i = 0; i < args.size(); ++i) {
    args[i].setValue(program.args[i].value);
    args[i].setKind(static_cast<schema::ArgKind>(program.args[i].kind));
  }
  out.setStreamCount(program.stream_count);
  out.setEventCount(program.event_count);
  out.setOutsideStreams(program.outside_streams);
}

void read_tables(schema::Program::Reader in, Program& program) {
  auto names = std::make_shared<NameTable>();
  limits::check(in.getNames().size(), limits::kNames, "names");
  for (const auto name : in.getNames())
    names->names.push_back(codec::take_text(name, limits::kNameBytes, "bytes of a name"));
  auto persistents = std::make_shared<std::vector<PersistentBuffer>>();
  limits::check(in.getPersistents().size(), limits::kBuffers, "persistent buffers");
  for (const auto p : in.getPersistents())
    persistents->push_back(
        {p.getName(), p.getSize(), p.getPageBytes(), p.getWritten(), p.getVersion()});
  limits::check(in.getTransients().size(), limits::kBuffers, "transient buffers");
  for (const auto t : in.getTransients())
    program.transients.push_back({t.getName(), t.getLayer(), t.getStream(), t.getSize()});
  program.names = std::move(names);
  program.persistents = std::move(persistents);
}

void read(schema::Program::Reader in, Program& program) {
  read_tables(in, program);
  limits::check(in.getCommands().size(), limits::kCommands, "commands");
  for (const auto c : in.getCommands()) program.commands.push_back(read(c));
  limits::check(in.getRegions().size(), limits::kRegions, "regions");
  for (const auto r : in.getRegions()) program.regions.push_back(read(r));
  limits::check(in.getTouched().size(), limits::kRegions, "regions");
  for (const auto r : in.getTouched()) program.touched.push_back(read(r));
  limits::check(in.getArgs().size(), limits::kRegions, "arguments");
  for (const auto a : in.getArgs())
    program.args.push_back({a.getValue(), from_schema(a.getKind())});
  program.stream_count = in.getStreamCount();
  program.event_count = in.getEventCount();
  program.outside_streams = in.getOutsideStreams();
}

}  // namespace

std::vector<uint8_t> encode_program(const Program& program) {
  REDECODE_CHECK(program.names != nullptr && program.persistents != nullptr);
  codec::Scratch scratch;
  const codec::Message message = codec::build<schema::Program>(
      scratch, [&](schema::Program::Builder root) { write(program, root); });
  const auto* bytes = reinterpret_cast<const uint8_t*>(message.data());
  return {bytes, bytes + message.size() * 8};
}

Program decode_program(std::span<const uint8_t> bytes, const std::string& name) {
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 28;
  if (bytes.size() > kMaxBytes)
    throw Error(ErrorCode::limit, "program has more than 256 MiB", name);
  if (bytes.size() < 16 || bytes.size() % 8 != 0 || load_le<uint32_t>(bytes.data()) != 0 ||
      load_le<uint32_t>(bytes.data() + 4) != bytes.size() / 8 - 1)
    throw Error(ErrorCode::corrupt, "not a program: no whole message of one segment", name);
  codec::Message words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  Program program;
  codec::open<schema::Program>(words, name, [&](auto root) { read(root, program); });
  if (const std::string reason = why_ill_formed(program); !reason.empty())
    throw Error(ErrorCode::corrupt, "program is ill-formed: " + reason, name);
  return program;
}

}  // namespace redecode
