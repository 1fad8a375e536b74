#include "traces/convert/record_sizes.h"

#include <array>
#include <memory>
#include <string_view>

#include "traces/container.h"
#include "traces/trace_set.h"
#include "traces/values_codec.h"

namespace redecode {
namespace {

using Root = schema::TraceRecord;

// By the number of the union's member in schema/trace.capnp.
constexpr std::array<std::string_view, 11> kKinds = {"header",   "step",     "output", "end",
                                                     "block",    "keyframe", "event",  "gap",
                                                     "exchange", "schema",   "index"};

void add_file(const std::filesystem::path& path, std::array<KindStats, kKinds.size()>& kinds) {
  ContainerReader reader(open_file(path), FileKind::trace);
  RecordView record;
  while (reader.next(record)) {
    size_t kind = kKinds.size();
    codec::open<Root>(record.message, reader.context(),
                      [&](Root::Reader root) { kind = static_cast<size_t>(root.which()); });
    if (kind >= kKinds.size()) continue;  // of a later version: it is read as nothing
    ++kinds[kind].records;
    kinds[kind].bytes += record.message.size() * sizeof(uint64_t);
  }
}

}  // namespace

std::vector<KindStats> record_sizes(const std::filesystem::path& path) {
  std::array<KindStats, kKinds.size()> kinds;
  if (is_set(path)) {
    const auto folder = std::filesystem::is_directory(path) ? path : path.parent_path();
    for (const SetFile& file : scan_set(folder).files) add_file(folder / file.name, kinds);
  } else {
    add_file(path, kinds);
  }
  std::vector<KindStats> out;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].records == 0) continue;
    kinds[i].kind = kKinds[i];
    out.push_back(kinds[i]);
  }
  return out;
}

}  // namespace redecode
