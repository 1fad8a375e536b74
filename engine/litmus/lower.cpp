#include "engine/litmus/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "traces/error.h"

namespace redecode {
namespace {

// Rows of a region, in order of name; its bytes are one unit a row and one for the rest.
using Rows = std::vector<std::string>;

class Lowering {
 public:
  explicit Lowering(const Litmus& litmus) : litmus_(litmus) {}

  LitmusProgram run() {
    names_ = std::make_shared<NameTable>();
    persistents_ = std::make_shared<std::vector<PersistentBuffer>>();
    collect_streams();
    collect_regions();
    for (const LitmusPersist& p : litmus_.persists) add_persist(p);
    for (const LitmusOp& op : litmus_.ops) add_op(op);
    out_.program.names = names_;
    out_.program.persistents = persistents_;
    out_.program.stream_count = std::max<uint32_t>(1, static_cast<uint32_t>(out_.streams.size()));
    out_.program.event_count = static_cast<uint32_t>(out_.events.size());
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(uint32_t line, const std::string& what,
                         ErrorCode code = ErrorCode::corrupt) const {
    throw Error(code, what, litmus_.name + " (line " + std::to_string(line) + ")");
  }

  void collect_streams() {
    const auto add = [&](const std::string& actor, uint32_t line) {
      if (actor == "H" || std::ranges::find(out_.streams, actor) != out_.streams.end()) return;
      if (out_.streams.size() == litmus_limits::kStreams)
        fail(line, "more than " + std::to_string(litmus_limits::kStreams) + " streams",
             ErrorCode::limit);
      out_.streams.push_back(actor);
    };
    const bool has_main =
        std::ranges::any_of(litmus_.ops, [](const LitmusOp& op) { return op.actor == "M"; });
    if (has_main) add("M", 0);
    for (const LitmusOp& op : litmus_.ops) add(op.actor, op.line);
    for (size_t i = 0; i < out_.streams.size(); ++i)
      if (std::ranges::find(litmus_.outside, out_.streams[i]) != litmus_.outside.end())
        out_.program.outside_streams |= uint32_t{1} << i;
  }

  // Where every name and alias points over the whole program, only to know the rows of a region:
  // a name may stand for several.
  void collect_regions() {
    std::map<std::string, std::set<std::string>> regions_of;
    for (const LitmusPersist& p : litmus_.persists) regions_of[p.name].insert(p.region);
    for (const LitmusOp& op : litmus_.ops)
      if (op.verb == LitmusVerb::alloc) regions_of[op.name].insert(op.region);
    for (const LitmusOp& op : litmus_.ops)
      if (op.verb == LitmusVerb::bake)
        for (const std::string& region : regions_of[op.target])
          regions_of['*' + op.name].insert(region);
    std::map<std::string, std::set<std::string>> rows;
    for (const auto& [name, regions] : regions_of)
      for (const std::string& region : regions) rows[region];
    for (const LitmusOp& op : litmus_.ops)
      for (const auto* operands : {&op.reads, &op.writes})
        for (const LitmusOperand& o : *operands)
          if (!o.row.empty())
            for (const std::string& region : regions_of[(o.baked ? "*" : "") + o.buffer])
              rows[region].insert(o.row);
    uint64_t cursor = 0;
    for (const auto& [region, names] : rows) {
      rows_[region] = Rows(names.begin(), names.end());
      place_[region] = {cursor, kLitmusRowBytes * (names.size() + 1), 0};
      cursor += place_[region].size_bytes + kLitmusRowBytes;
    }
  }

  uint32_t version(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, fresh] =
        versions_.try_emplace(text, static_cast<uint32_t>(out_.versions.size() + 1));
    if (fresh) out_.versions.push_back(text);
    return at->second;
  }

  void add_persist(const LitmusPersist& p) {
    PersistentBuffer buffer;
    buffer.name = names_->intern(p.name);
    buffer.size_bytes = place_[p.region].size_bytes;
    buffer.written = !p.version.empty();
    buffer.version = version(p.version);
    current_[p.name] = {BufferId::persistent(static_cast<uint32_t>(persistents_->size())),
                        p.region};
    persistents_->push_back(buffer);
    out_.extents.persistents.push_back(place_[p.region]);
  }

  StreamId stream_of(const LitmusOp& op) const {
    if (op.actor == "H") return kHost;
    return static_cast<StreamId>(std::ranges::find(out_.streams, op.actor) - out_.streams.begin());
  }

  EventId event(const std::string& name) {
    const auto at = std::ranges::find(out_.events, name);
    const auto id = static_cast<EventId>(at - out_.events.begin());
    if (at == out_.events.end()) out_.events.push_back(name);
    return id;
  }

  struct Place {
    BufferId buffer;
    std::string region;
  };

  const Place& place_of(const std::map<std::string, Place>& table, const std::string& name,
                        uint32_t line, const char* what) const {
    const auto at = table.find(name);
    if (at == table.end()) fail(line, "no " + std::string(what) + " '" + name + "' before this op");
    return at->second;
  }

  void add_region(const LitmusOperand& o, Access access, uint32_t line) {
    const Place& place = o.baked ? place_of(baked_, o.buffer, line, "baked address")
                                 : place_of(current_, o.buffer, line, "buffer");
    const Rows& rows = rows_[place.region];
    Region r;
    r.buffer = place.buffer;
    r.access = access;
    r.size_bytes = place_[place.region].size_bytes;
    r.version = version(o.version);
    if (!o.row.empty()) {
      const auto row = std::ranges::lower_bound(rows, o.row) - rows.begin();
      r.offset_bytes = kLitmusRowBytes * static_cast<uint64_t>(row);
      r.size_bytes = kLitmusRowBytes;
    }
    out_.program.regions.push_back(r);
  }

  void add_allocation(const LitmusOp& op, Command& c) {
    TransientBuffer buffer;
    buffer.name = names_->intern(op.name);
    buffer.stream = c.stream == kHost ? StreamId{0} : c.stream;
    buffer.size_bytes = place_[op.region].size_bytes;
    c.buffer = BufferId::transient(static_cast<uint32_t>(out_.program.transients.size()));
    out_.program.transients.push_back(buffer);
    Extent extent = place_[op.region];
    extent.generation = ++generation_;
    out_.extents.transients.push_back(extent);
    current_[op.name] = {c.buffer, op.region};
  }

  void add_kernel(const LitmusOp& op, Command& c) {
    c.kind = c.stream == kHost ? CommandKind::host : CommandKind::launch;
    c.kernel = kNoKernel;
    c.before_wait = op.verb == LitmusVerb::kernel_before_wait;
    c.needs_all_blocks = op.verb == LitmusVerb::kernel_all_resident;
    c.first_region = static_cast<uint32_t>(out_.program.regions.size());
    for (const LitmusOperand& o : op.reads) add_region(o, Access::read, op.line);
    for (const LitmusOperand& o : op.writes) add_region(o, Access::write, op.line);
    c.region_count = static_cast<uint32_t>(out_.program.regions.size()) - c.first_region;
  }

  void add_op(const LitmusOp& op) {
    Command c;
    c.stream = stream_of(op);
    c.name = names_->intern(op.name);
    switch (op.verb) {
      case LitmusVerb::alloc:
        c.kind = CommandKind::allocate;
        add_allocation(op, c);
        break;
      case LitmusVerb::free:
        c.kind = CommandKind::free;
        c.buffer = place_of(current_, op.name, op.line, "buffer").buffer;
        break;
      case LitmusVerb::record:
      case LitmusVerb::wait:
        c.kind = op.verb == LitmusVerb::record ? CommandKind::record : CommandKind::wait;
        c.event = event(op.name);
        break;
      case LitmusVerb::sync: {
        c.kind = CommandKind::sync;
        const auto at = std::ranges::find(out_.streams, op.name);
        if (at == out_.streams.end()) fail(op.line, "no stream '" + op.name + "' in this file");
        c.stream = static_cast<StreamId>(at - out_.streams.begin());
        break;
      }
      case LitmusVerb::bake:
        baked_[op.name] = place_of(current_, op.target, op.line, "buffer");
        return;
      default:
        add_kernel(op, c);
    }
    out_.program.commands.push_back(c);
    out_.ids.push_back(op.id);
  }

  const Litmus& litmus_;
  LitmusProgram out_;
  std::shared_ptr<NameTable> names_;
  std::shared_ptr<std::vector<PersistentBuffer>> persistents_;
  std::map<std::string, Rows> rows_;
  std::map<std::string, Extent> place_;  // by region
  std::map<std::string, Place> current_, baked_;
  std::map<std::string, uint32_t> versions_;
  uint64_t generation_ = 0;
};

}  // namespace

LitmusProgram lower(const Litmus& litmus) { return Lowering(litmus).run(); }

}  // namespace redecode
