#include "traces/schema_record.h"

#include <capnp/dynamic.h>
#include <capnp/schema-loader.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <kj/string.h>

#include <map>

#include "traces/container.h"
#include "traces/schema/run.capnp.h"
#include "traces/schema/trace.capnp.h"

namespace redecode {
namespace codec {
namespace {

using Nodes = std::map<uint64_t, capnp::Schema>;

void collect(capnp::Schema schema, Nodes& nodes);

void collect(capnp::Type type, Nodes& nodes) {
  if (type.isList()) return collect(type.asList().getElementType(), nodes);
  if (type.isStruct()) collect(capnp::Schema(type.asStruct()), nodes);
  if (type.isEnum()) collect(capnp::Schema(type.asEnum()), nodes);
}

void collect(capnp::Schema schema, Nodes& nodes) {
  const auto node = schema.getProto();
  if (!nodes.emplace(node.getId(), schema).second || !node.isStruct()) return;
  for (const auto field : schema.asStruct().getFields()) collect(field.getType(), nodes);
}

}  // namespace

Message compiled_schema(capnp::Schema root) {
  Nodes nodes;
  collect(root, nodes);
  capnp::MallocMessageBuilder builder;
  auto request = builder.initRoot<capnp::schema::CodeGeneratorRequest>();
  auto list = request.initNodes(static_cast<unsigned>(nodes.size()));
  unsigned at = 0;
  for (const auto& [id, schema] : nodes) list.setWithCaveats(at++, schema.getProto());
  const auto words =
      capnp::canonicalize(builder.getRoot<capnp::schema::CodeGeneratorRequest>().asReader());
  return with_segment_table(words.asPtr());
}

void write_schema(capnp::Schema root, schema::FileSchema::Builder out) {
  const Message request = compiled_schema(root);
  const auto* bytes = reinterpret_cast<const uint8_t*>(request.data());
  out.setRequest(kj::arrayPtr(bytes, request.size() * 8));
  out.setRoot(root.getProto().getId());
  out.setHash(digest_bytes(bytes, request.size() * 8));
}

}  // namespace codec

namespace {

// Prints records by a schema that is only known at run time.
class OwnSchema {
 public:
  explicit OwnSchema(schema::FileSchema::Reader in) {
    const auto request = in.getRequest();
    const size_t words = request.size() / 8;
    limits::check(request.size(), limits::kChunkBytes, "bytes of a schema");
    words_ = kj::heapArray<capnp::word>(words);
    std::memcpy(words_.begin(), request.begin(), words * 8);
    capnp::ReaderOptions options;
    options.nestingLimit = limits::kNesting * 2;
    capnp::FlatArrayMessageReader reader(words_, options);
    for (const auto node : reader.getRoot<capnp::schema::CodeGeneratorRequest>().getNodes())
      loader_.load(node);
    root_ = loader_.get(in.getRoot()).asStruct();
  }

  std::string print(MessageWords message) {
    const auto* words = reinterpret_cast<const capnp::word*>(message.data());
    const kj::ArrayPtr<const capnp::word> segment(words + 1, message.size() - 1);
    const kj::ArrayPtr<const capnp::word> segments[] = {segment};
    capnp::ReaderOptions options;
    options.traversalLimitInWords = segment.size() * limits::kTraversalFactor + 64;
    options.nestingLimit = limits::kNesting;
    capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments, 1), options);
    return kj::str(reader.getRoot<capnp::DynamicStruct>(root_)).cStr();
  }

 private:
  kj::Array<capnp::word> words_;
  capnp::SchemaLoader loader_;
  capnp::StructSchema root_;
};

template <class Root>
std::unique_ptr<OwnSchema> own_schema(const std::vector<uint64_t>& record,
                                      const std::string& name) {
  std::unique_ptr<OwnSchema> out;
  codec::open<Root>(record, name, [&](typename Root::Reader root) {
    if (!root.isSchema()) throw Error(ErrorCode::corrupt, "schema chunk without a schema");
    out = std::make_unique<OwnSchema>(root.getSchema());
  });
  return out;
}

}  // namespace

std::string dump_by_own_schema(const std::filesystem::path& path, uint64_t limit) {
  std::unique_ptr<ByteSource> source = open_file(path);
  const FileKind kind = peek_file_kind(*source);
  const std::vector<uint64_t> record = read_schema_record(*source);
  if (record.empty())
    throw Error(ErrorCode::missing, "the file carries no schema of its own", path.string());
  const auto schema = kind == FileKind::trace
                          ? own_schema<schema::TraceRecord>(record, path.string())
                          : own_schema<schema::RunRecord>(record, path.string());
  ContainerReader reader(std::move(source), kind);
  std::string out;
  RecordView view;
  for (uint64_t shown = 0; shown < limit && reader.next(view); ++shown) {
    try {
      out += schema->print(view.message) + '\n';
    } catch (const kj::Exception& error) {
      throw Error(ErrorCode::corrupt, error.getDescription().cStr(), reader.context());
    }
  }
  return out;
}

}  // namespace redecode
