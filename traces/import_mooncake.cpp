#include "traces/import_mooncake.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <kj/exception.h>

#include <cmath>

#include "traces/byte_source.h"
#include "traces/limits.h"
#include "traces/line_reader.h"

namespace redecode {
namespace {

constexpr double kMaxExact = 9007199254740992.0;  // 2^53: a JSON number is a double here
constexpr size_t kMaxNesting = 8;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

uint64_t whole(capnp::JsonValue::Reader value, double cap, const char* what,
               const LineReader& lines) {
  if (!value.isNumber()) lines.fail(std::string(what) + " is not a number");
  const double number = value.getNumber();
  if (!(number >= 0) || number != std::floor(number))
    lines.fail(std::string(what) + " is not a whole number from 0");
  if (number > cap) lines.fail(std::string(what) + " is too large", 0, ErrorCode::limit);
  return static_cast<uint64_t>(number);
}

uint32_t tokens(capnp::JsonValue::Reader value, const char* what, const LineReader& lines) {
  return static_cast<uint32_t>(
      whole(value, static_cast<double>(limits::kImportTokens), what, lines));
}

std::vector<uint32_t> hash_ids(capnp::JsonValue::Reader value, const LineReader& lines) {
  if (!value.isArray()) lines.fail("hash_ids is not an array");
  const auto list = value.getArray();
  if (list.size() > limits::kImportHashIds)
    lines.fail("hash_ids has too many numbers", 0, ErrorCode::limit);
  std::vector<uint32_t> out;
  out.reserve(list.size());
  for (const auto item : list)
    out.push_back(static_cast<uint32_t>(whole(item, UINT32_MAX, "a hash id", lines)));
  return out;
}

MooncakeRow read_row(capnp::JsonValue::Reader json, const LineReader& lines) {
  if (!json.isObject()) lines.fail("line is not a JSON object");
  MooncakeRow row;
  unsigned seen = 0;
  const auto once = [&](unsigned bit, const char* what) {
    if ((seen & bit) != 0) lines.fail(std::string(what) + " appears twice");
    seen |= bit;
  };
  for (const auto field : json.getObject()) {
    const std::string_view name(field.getName().begin(), field.getName().size());
    if (name == "timestamp") {
      once(1, "timestamp");
      row.arrival_ms = whole(field.getValue(), kMaxExact, "timestamp", lines);
    } else if (name == "input_length") {
      once(2, "input_length");
      row.input_length = tokens(field.getValue(), "input_length", lines);
    } else if (name == "output_length") {
      once(4, "output_length");
      row.output_length = tokens(field.getValue(), "output_length", lines);
    } else if (name == "hash_ids") {
      once(8, "hash_ids");
      row.hash_ids = hash_ids(field.getValue(), lines);
    }
  }
  if ((seen & 7u) != 7u) lines.fail("timestamp, input_length or output_length is missing");
  return row;
}

}  // namespace

std::vector<MooncakeRow> parse_mooncake(std::string_view text, const std::string& name) {
  LineReader lines(text, name);
  capnp::JsonCodec codec;
  codec.setMaxNestingDepth(kMaxNesting);
  std::vector<MooncakeRow> rows;
  std::string_view line;
  while (lines.next(line)) {
    if (is_blank(line)) continue;
    if (rows.size() == limits::kImportRows) lines.fail("too many rows", 0, ErrorCode::limit);
    try {
      capnp::MallocMessageBuilder message;
      auto json = message.initRoot<capnp::JsonValue>();
      codec.decodeRaw(kj::arrayPtr(line.data(), line.size()), json);
      rows.push_back(read_row(json.asReader(), lines));
    } catch (const kj::Exception& e) {
      lines.fail(std::string("not JSON: ") + e.getDescription().cStr());
    }
  }
  return rows;
}

std::vector<MooncakeRow> import_mooncake(const std::filesystem::path& path) {
  return parse_mooncake(read_text_file(path, limits::kImportFileBytes), path.string());
}

}  // namespace redecode
