#include "traces/convert/import_requests.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "traces/byte_source.h"
#include "traces/convert/import_openai.h"
#include "traces/convert/line_stream.h"
#include "traces/convert/unix_time.h"
#include "traces/edit/same_file.h"
#include "traces/error.h"
#include "traces/import_azure.h"
#include "traces/import_mooncake.h"
#include "traces/json_writer.h"
#include "traces/limits.h"
#include "traces/thousands.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

constexpr std::string_view kAzureColumns = "TIMESTAMP,ContextTokens,GeneratedTokens";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

Exchange lengths_only(uint32_t prompt_tokens, uint32_t output_tokens) {
  Exchange e;
  e.path = "/v1/completions";
  e.end = ExchangeEnd::not_sent;
  e.prompt_tokens = prompt_tokens;
  e.output_tokens = output_tokens;
  e.max_tokens = output_tokens;
  return e;
}

// Lines of one file as requests; knows what of earlier lines is needed for later ones.
class LineReading {
 public:
  LineReading(ImportFormat format, std::string name) : format_(format), name_(std::move(name)) {}

  // Errors: corrupt, limit.
  ImportedRequest read(std::string_view line) {
    switch (format_) {
      case ImportFormat::mooncake:
        return mooncake(line);
      case ImportFormat::azure:
        return azure(line);
      case ImportFormat::openai:
        break;
    }
    return parse_openai_line(line);
  }

 private:
  ImportedRequest mooncake(std::string_view line) const {
    const MooncakeRow row = parse_mooncake(line, name_).at(0);
    ImportedRequest out{lengths_only(row.input_length, row.output_length), {}};
    out.exchange.block_hashes.assign(row.hash_ids.begin(), row.hash_ids.end());
    if (row.arrival_ms > static_cast<uint64_t>(INT64_MAX) / 1000)
      throw Error(ErrorCode::limit, "timestamp is too large");
    out.time_us = static_cast<int64_t>(row.arrival_ms * 1000);
    return out;
  }

  // Times of the format are relative to the first row, so that it is read along.
  ImportedRequest azure(std::string_view line) {
    std::string text(kAzureColumns);
    text += '\n';
    if (!first_.empty()) text += first_ + '\n';
    text += line;
    const std::vector<AzureRow> rows = parse_azure(text, name_);
    if (first_.empty()) first_ = line;
    const AzureRow& row = rows.back();
    return {lengths_only(row.context_tokens, row.generated_tokens),
            static_cast<int64_t>(row.arrival_100ns / 10)};
  }

  ImportFormat format_;
  std::string name_;
  std::string first_;  // row, of azure
};

ImportFormat guess(std::string_view line, const std::string& name) {
  if (line == kAzureColumns) return ImportFormat::azure;
  const size_t at = line.find_first_not_of(" \t");
  if (at != std::string_view::npos && line[at] == '{')
    return line.find("\"input_length\"") != std::string_view::npos ? ImportFormat::mooncake
                                                                   : ImportFormat::openai;
  throw Error(ErrorCode::usage,
              "the first line tells no format: say it with --format mooncake, azure or openai",
              name);
}

ImportFormat format_of(ByteSource& source, const ImportOptions& options) {
  if (options.format) return *options.format;
  LineStream lines(source);
  std::string line;
  while (lines.next(line))
    if (!is_blank(line) || lines.is_too_long()) return guess(line, source.name());
  throw Error(ErrorCode::corrupt, "the file holds no line", source.name());
}

struct Place {
  int64_t at_us = 0;
  LinePlace line;
};

class Import {
 public:
  Import(ByteSource& source, ImportFormat format, const ImportOptions& options)
      : source_(source), options_(options), reading_(format, source.name()) {
    result_.format = format;
  }

  // First pass: every line is read, and only where it stands is kept.
  void scan() {
    LineStream lines(source_);
    std::string line;
    if (result_.format == ImportFormat::azure && (!lines.next(line) || line != kAzureColumns))
      throw Error(ErrorCode::corrupt, "first line is not \"" + std::string(kAzureColumns) + '"',
                  source_.name() + ": line 1");
    while (lines.next(line)) scan_line(lines, line);
    result_.lines = lines.number();
    if (places_.empty())
      throw Error(ErrorCode::corrupt,
                  result_.bad_lines == 0 ? "the file holds no request"
                                         : "no line can be read as a request of the format " +
                                               std::string(to_text(result_.format)) +
                                               "; the first: " + result_.first_bad.front().reason,
                  source_.name());
    settle_times();
  }

  // Second pass: by time.
  void write(const std::filesystem::path& to) {
    TraceHeader header;
    header.writer = options_.writer;
    header.model.family = "external";
    header.workload = "imported from " + std::string(to_text(result_.format));
    if (is_unix_us(base_us_)) header.started_unix_us = base_us_;
    TraceWriter writer(to, header, {}, options_.overwrite);
    for (const Place& place : places_) {
      ImportedRequest request = reading_.read(read_line_at(source_, place.line));
      Exchange& e = request.exchange;
      e.number = result_.requests++;
      e.start_us = static_cast<uint64_t>(place.at_us - base_us_);
      e.session = static_cast<SessionId>(e.number);
      writer.write(e);
    }
    writer.close();
  }

  ImportResult take() { return std::move(result_); }

 private:
  void scan_line(const LineStream& lines, const std::string& line) {
    if (!lines.is_too_long() && is_blank(line)) return;
    if (places_.size() == limits::kImportRows)
      fail(lines, Error(ErrorCode::limit, "more than " + with_thousands(limits::kImportRows) +
                                              " requests: split the file"));
    try {
      if (lines.is_too_long())
        throw Error(ErrorCode::limit, "the line is longer than " +
                                          with_thousands(limits::kImportLineBytes) + " bytes");
      const ImportedRequest request = reading_.read(line);
      if (!request.time_us) ++result_.without_time;
      if (request.time_us && !first_known_us_) first_known_us_ = request.time_us;
      if (!request.time_us && !first_known_us_) ++leading_without_time_;
      last_us_ = request.time_us.value_or(last_us_);
      places_.push_back({last_us_, lines.place()});
    } catch (const Error& e) {
      if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::limit) throw;
      if (!options_.skip_bad) fail(lines, e);
      if (result_.bad_lines++ < kBadLinesListed)
        result_.first_bad.push_back({lines.number(), e.message()});
    }
  }

  [[noreturn]] void fail(const LineStream& lines, const Error& e) const {
    throw Error(e.code(), e.message(),
                source_.name() + ": line " + std::to_string(lines.number()) + ", byte " +
                    std::to_string(lines.place().offset_bytes));
  }

  void settle_times() {
    for (size_t i = 0; i < leading_without_time_; ++i)
      places_[i].at_us = first_known_us_.value_or(0);
    const auto earlier = [](const Place& a, const Place& b) { return a.at_us < b.at_us; };
    result_.sorted = std::is_sorted(places_.begin(), places_.end(), earlier);
    if (!result_.sorted) std::stable_sort(places_.begin(), places_.end(), earlier);
    result_.span_us = static_cast<uint64_t>(places_.back().at_us - places_.front().at_us);
    if (result_.format == ImportFormat::openai) base_us_ = places_.front().at_us;
  }

  ByteSource& source_;
  const ImportOptions& options_;
  LineReading reading_;
  ImportResult result_;
  std::vector<Place> places_;
  std::optional<int64_t> first_known_us_;
  size_t leading_without_time_ = 0;
  int64_t last_us_ = 0, base_us_ = 0;
};

}  // namespace

std::string_view to_text(ImportFormat format) {
  switch (format) {
    case ImportFormat::mooncake:
      return "mooncake";
    case ImportFormat::azure:
      return "azure";
    case ImportFormat::openai:
      return "openai";
  }
  return "?";
}

bool from_text(std::string_view text, ImportFormat& out) {
  for (const auto format : {ImportFormat::mooncake, ImportFormat::azure, ImportFormat::openai}) {
    if (text != to_text(format)) continue;
    out = format;
    return true;
  }
  return false;
}

ImportResult import_requests(const std::filesystem::path& from, const std::filesystem::path& to,
                             const ImportOptions& options) {
  refuse_same_file(from, to);
  const std::unique_ptr<ByteSource> source = open_file(from);
  Import import(*source, format_of(*source, options), options);
  import.scan();
  import.write(to);
  return import.take();
}

std::string to_text(const ImportResult& r, const std::string& from, const std::string& to) {
  std::string out = "imported " + to + ": " + with_thousands(r.requests) + " requests of " + from +
                    " (" + std::string(to_text(r.format)) + "), over " +
                    with_thousands(r.span_us / 1000) + " ms\n";
  if (!r.sorted) out += "  the file was not in order of time; the trace is\n";
  if (r.without_time != 0)
    out += "  " + with_thousands(r.without_time) +
           " lines say no time: those requests arrive with the one before them\n";
  if (r.bad_lines != 0) out += "  " + with_thousands(r.bad_lines) + " bad lines left out\n";
  for (const BadLine& bad : r.first_bad)
    out += "    line " + with_thousands(bad.number) + ": " + bad.reason + '\n';
  return out;
}

std::string to_json(const ImportResult& r, const std::string& from, const std::string& to) {
  JsonWriter json;
  json.begin_object().member("from", from).member("to", to).member("format", to_text(r.format));
  json.member("lines", r.lines).member("requests", r.requests).member("bad_lines", r.bad_lines);
  json.member("without_time", r.without_time).member("sorted", r.sorted);
  json.member("span_us", r.span_us).key("first_bad").begin_array();
  for (const BadLine& bad : r.first_bad)
    json.begin_object().member("line", bad.number).member("reason", bad.reason).end_object();
  json.end_array().end_object();
  return json.take();
}

}  // namespace redecode
