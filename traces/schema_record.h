// traces/schema_record.h - the schema of a file, compiled, as the file carries it. Internal to
// traces/*.cpp, but for dump_by_own_schema.
//
// A reader of another time needs no schema text: the request holds all structs that records are
// made of, by id ascending, in canonical form. Its digest names the schema.
#pragma once
#include <capnp/schema.h>

#include <filesystem>
#include <string>

#include "traces/capnp_message.h"
#include "traces/digest.h"
#include "traces/schema/common.capnp.h"

namespace redecode {

namespace codec {

// A CodeGeneratorRequest of `root` and all that it names.
Message compiled_schema(capnp::Schema root);
void write_schema(capnp::Schema root, schema::FileSchema::Builder out);

}  // namespace codec

// The records of a file as Cap'n Proto text, by the schema that the file carries itself, at most
// `limit` of them. Errors: as TraceReader; missing (it carries none).
std::string dump_by_own_schema(const std::filesystem::path& path, uint64_t limit);

}  // namespace redecode
