#include "cli/trace_convert.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/output.h"
#include "replayer/engine_instance.h"
#include "traces/convert/export_csv.h"
#include "traces/convert/export_json_lines.h"
#include "traces/convert/export_logits.h"
#include "traces/convert/export_perfetto.h"
#include "traces/convert/import_requests.h"
#include "traces/convert/stats.h"
#include "traces/edit/same_file.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

struct Convert {
  std::string input, output, format, what;
  bool force = false, skip_bad = false;
};

[[noreturn]] void usage(const std::string& message, const std::string& context) {
  throw Error(ErrorCode::usage, message, context);
}

int run_stats(const CommandContext& context, const Convert& o) {
  const TraceStats stats = trace_stats(o.input);
  emit(context, to_text(stats), to_json(stats));
  return 0;
}

int run_import(const CommandContext& context, const Convert& o) {
  ImportOptions options;
  options.skip_bad = o.skip_bad;
  options.overwrite = o.force;
  options.writer = writer_name();
  if (!o.format.empty()) {
    ImportFormat format{};
    if (!from_text(o.format, format)) usage("there are mooncake, azure and openai", "--format");
    options.format = format;
  }
  if (!o.force && std::filesystem::exists(o.output))
    usage("the file exists; --force replaces it", o.output);
  const ImportResult result = import_requests(o.input, o.output, options);
  emit(context, to_text(result, o.input, o.output), to_json(result, o.input, o.output));
  return 0;
}

// When the reader of stdout has gone the rest is dropped, as by emit.
class StdoutSink final : public ByteSink {
 public:
  void write(std::string_view bytes) override {
    if (gone_) return;
    errno = 0;
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) fail();
  }
  void flush() {
    errno = 0;
    if (!gone_ && std::fflush(stdout) != 0) fail();
  }

 private:
  void fail() {
    if (errno != EPIPE) throw Error(ErrorCode::environment, std::strerror(errno), "stdout");
    gone_ = true;
  }
  bool gone_ = false;
};

enum class Format : uint8_t { csv, jsonl, perfetto, npy, npz };

struct FormatName {
  Format format;
  const char* name;
  const char* ending;  // of a file of it
};
constexpr FormatName kFormats[] = {{Format::csv, "csv", ".csv"},
                                   {Format::jsonl, "jsonl", ".jsonl"},
                                   {Format::perfetto, "perfetto", ".pftrace"},
                                   {Format::npy, "npy", ".npy"},
                                   {Format::npz, "npz", ".npz"}};

Format format_of(const Convert& o) {
  const std::string ending = std::filesystem::path(o.output).extension().string();
  for (const FormatName& format : kFormats)
    if (o.format.empty() ? ending == format.ending : o.format == format.name) return format.format;
  usage(o.format.empty() ? "the name of the output tells no format: say which"
                         : "unknown format '" + o.format + "'",
        "--format csv, jsonl, perfetto, npy or npz");
}

CsvTable table_of(const Convert& o, Format format) {
  CsvTable table = CsvTable::steps;
  if (o.what.empty()) return table;
  if (format != Format::csv) usage("is for csv only", "--what");
  if (!from_text(o.what, table)) usage("there are steps, requests, rows and exchanges", "--what");
  return table;
}

ExportResult export_to(const Convert& o, Format format, CsvTable table, ByteSink& out) {
  switch (format) {
    case Format::csv:
      return export_csv(o.input, table, out);
    case Format::jsonl:
      return export_json_lines(o.input, out);
    case Format::perfetto:
      return export_perfetto(o.input, out);
    case Format::npy:
      return export_npy(o.input, out);
    case Format::npz:
      break;
  }
  return export_npz(o.input, out);
}

void add_cut_notice(const Convert& o, ExportResult& result) {
  if (result.end == FileEnd::cut)
    result.notices.push_back(o.input + " is cut: exported is what could be read of it");
}

int export_to_stdout(const CommandContext& context, const Convert& o, Format format,
                     CsvTable table) {
  if (format != Format::csv && format != Format::jsonl)
    usage("only csv and jsonl go to standard output: name a file", "-o -");
  if (context.json) usage("standard output holds the export itself", "--json");
  StdoutSink sink;
  ExportResult result = export_to(o, format, table, sink);
  sink.flush();
  add_cut_notice(o, result);
  for (const std::string& notice : result.notices)
    std::fprintf(stderr, "redecode: %s\n", one_line(notice).c_str());
  return result.end == FileEnd::clean ? 0 : 1;
}

int run_export(const CommandContext& context, const Convert& o) {
  const Format format = format_of(o);
  const CsvTable table = table_of(o, format);
  if (o.output == "-") return export_to_stdout(context, o, format, table);
  refuse_same_file(o.input, o.output);
  FileSink sink(o.output, o.force);
  ExportResult result = export_to(o, format, table, sink);
  sink.close();
  add_cut_notice(o, result);
  std::string text = "exported " + o.output + ": " + with_thousands(result.items) + ' ' +
                     result.unit + ", " + with_thousands(sink.bytes_written()) + " bytes\n";
  JsonWriter json;
  json.begin_object().member("from", o.input).member("to", o.output);
  json.member("items", result.items).member("unit", result.unit);
  json.member("bytes", sink.bytes_written()).key("notices").begin_array();
  for (const std::string& notice : result.notices) {
    text += "  " + notice + '\n';
    json.value(notice);
  }
  json.end_array().end_object();
  emit(context, text, json.take());
  return result.end == FileEnd::clean ? 0 : 1;
}

CLI::App* add(CLI::App& trace, CommandContext& context, const std::string& name,
              const std::string& summary, const std::string& example,
              const std::shared_ptr<Convert>& o,
              int (*run)(const CommandContext&, const Convert&)) {
  CLI::App* command = add_command(trace, context, name, summary, example);
  on_run(command, context, [&context, o, run] { return run(context, *o); });
  return command;
}

void add_output(CLI::App* command, const std::shared_ptr<Convert>& o, const char* help) {
  command->add_option("-o,--output", o->output, help)->required();
  command->add_flag("--force", o->force, "Replace an existing file");
}

}  // namespace

void add_trace_convert(CLI::App& trace, CommandContext& context) {
  const auto o = std::make_shared<Convert>();
  CLI::App* stats = add(trace, context, "stats", "What a trace adds up to: sizes, times, shares",
                        "redecode trace stats fleet.rdt", o, run_stats);
  stats->add_option("file", o->input, "Trace or folder of a set")->required();
  CLI::App* import = add(trace, context, "import", "A published trace or a request log as a trace",
                         "redecode trace import requests.jsonl -o requests.rdt\n"
                         "  redecode trace import conversation.csv --format azure -o azure.rdt",
                         o, run_import);
  import->add_option("file", o->input, "Mooncake JSONL, Azure CSV or OpenAI request JSONL")
      ->required();
  import->add_option("--format", o->format,
                     "mooncake, azure or openai; default: by the first line");
  import->add_flag("--skip-bad", o->skip_bad, "Leave out and count lines that cannot be read");
  add_output(import, o, "Trace to write (.rdt)");
  CLI::App* exporting =
      add(trace, context, "export", "A trace for other tools; exit 1 when the input is cut",
          "redecode trace export fleet.rdt -o steps.csv\n"
          "  redecode trace export fleet.rdt --format perfetto -o fleet.pftrace\n"
          "  redecode trace export run.rdr -o logits.npz",
          o, run_export);
  exporting->add_option("file", o->input, "Trace, folder of a set, or run (.rdr)")->required();
  exporting->add_option("--format", o->format,
                        "csv, jsonl, perfetto, npy or npz; default: by the ending of the output");
  exporting->add_option("--what", o->what, "Of csv: steps, requests, rows or exchanges");
  add_output(exporting, o, "File to write; '-': standard output, for csv and jsonl");
}

}  // namespace redecode
