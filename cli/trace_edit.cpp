#include "cli/trace_edit.h"

#include <charconv>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/step_range.h"
#include "recorder/ring/ring_file.h"
#include "traces/edit/cut.h"
#include "traces/edit/recover.h"
#include "traces/edit/redact.h"
#include "traces/edit/same_file.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

struct Edit {
  std::string salt, encrypt, decrypt;
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  std::vector<std::string> rings;
  std::string steps, time;
  std::vector<RequestId> requests;
  std::vector<SessionId> sessions;
};

int run_recover(const CommandContext& context, const Edit& o) {
  const std::string& from = o.inputs.front();
  std::vector<std::filesystem::path> rings(o.rings.begin(), o.rings.end());
  if (rings.empty()) rings = rings_of(from);
  MoreRecords more;
  if (!rings.empty())
    more = [&](StepIndex next_step, RecordTarget& target) {
      drain_rings(rings, next_step, target);
    };
  const RecoverResult result = recover(from, o.output, o.force, more);
  emit(context, to_text(result, from, o.output), to_json(result, from, o.output));
  return result.is_whole() ? 0 : 1;
}

// "1.5s..20s", either side may be left out.
std::optional<uint64_t> microseconds(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.ends_with('s')) text.remove_suffix(1);
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0) || seconds > 1e9)
    throw Error(ErrorCode::usage, "a time is seconds since the recording began, e.g. 1.5s..20s",
                "--time");
  return static_cast<uint64_t>(seconds * 1e6);
}

CutOptions cut_options(const Edit& o) {
  CutOptions options;
  const StepRange range = parse_step_range(o.steps);
  options.first = range.first;
  options.last = range.last;
  if (!o.time.empty()) {
    const size_t dots = o.time.find("..");
    if (dots == std::string::npos || !o.steps.empty())
      throw Error(ErrorCode::usage, "one of --steps A..B and --time A..B", "--time");
    options.first_us = microseconds(std::string_view(o.time).substr(0, dots)).value_or(0);
    options.last_us = microseconds(std::string_view(o.time).substr(dots + 2));
  }
  options.requests = {o.requests.begin(), o.requests.end()};
  options.sessions = {o.sessions.begin(), o.sessions.end()};
  return options;
}

std::string joined(const std::set<RequestId>& requests) {
  std::string out;
  for (const RequestId request : requests)
    out += (out.empty() ? "" : ", ") + std::to_string(request);
  return out;
}

int run_cut(const CommandContext& context, const Edit& o) {
  refuse_same_file(o.inputs.front(), o.output);
  const CutOptions options = cut_options(o);
  const CutResult result = cut(load_trace(o.inputs.front()), options);
  save_trace(result.trace, o.output, o.force);
  std::string text = "cut " + o.output + ": " + with_thousands(result.steps) + " steps, " +
                     with_thousands(result.rows) + " rows\n";
  if (result.history_rows != 0)
    text += "  before them " + with_thousands(result.history_rows) +
            " rows that they need, so that they can be replayed\n";
  if (!result.kept_writers.empty())
    text +=
        "  kept too, as writers of shared pages: requests " + joined(result.kept_writers) + '\n';
  if (!result.broken.empty())
    text += "  left out, as steps of them are missing: requests " + joined(result.broken) + '\n';
  JsonWriter json;
  json.begin_object().member("to", o.output).member("steps", result.steps);
  json.member("rows", result.rows).member("history_rows", result.history_rows);
  json.key("kept_writers").begin_array();
  for (const RequestId request : result.kept_writers) json.value(request);
  json.end_array().key("broken").begin_array();
  for (const RequestId request : result.broken) json.value(request);
  json.end_array().end_object();
  emit(context, text, json.take());
  return 0;
}

int run_merge(const CommandContext& context, const Edit& o) {
  const std::vector<std::filesystem::path> parts(o.inputs.begin(), o.inputs.end());
  const MergeResult result = merge(parts, o.output, o.force);
  std::string text = "merged " + o.output + ": " + with_thousands(result.steps) + " steps of " +
                     with_thousands(parts.size()) + " parts";
  if (result.overlapping != 0)
    text += ", " + with_thousands(result.overlapping) + " of them in two parts";
  text += '\n';
  JsonWriter json;
  json.begin_object().member("to", o.output).member("steps", result.steps);
  json.member("overlapping", result.overlapping).key("gaps").begin_array();
  for (const Gap& gap : result.gaps) {
    text += "  " + to_text(gap) + '\n';
    json.value(to_text(gap));
  }
  json.end_array().end_object();
  emit(context, text, json.take());
  return result.gaps.empty() ? 0 : 1;
}

RedactOptions redact_options(const Edit& o) {
  RedactOptions options;
  if (!o.salt.empty() && !o.encrypt.empty())
    throw Error(ErrorCode::usage, "keep hashes or encrypted tokens, not both",
                "--hashes, --encrypt");
  if (!o.salt.empty()) {
    options.keep = Redaction::hashes;
    std::ifstream in(o.salt, std::ios::binary);
    if (!in) throw Error(ErrorCode::missing, "no such salt file", o.salt);
    constexpr size_t kMostBytes = 4096;
    options.salt.resize(kMostBytes);
    in.read(reinterpret_cast<char*>(options.salt.data()), kMostBytes);
    options.salt.resize(static_cast<size_t>(in.gcount()));
  }
  if (!o.encrypt.empty()) {
    options.keep = Redaction::encrypted;
    options.key = load_seal_key(o.encrypt);
  }
  return options;
}

int run_decrypt(const CommandContext& context, const Edit& o) {
  const RedactResult result =
      decrypt(o.inputs.front(), o.output, o.force, load_seal_key(o.decrypt));
  JsonWriter json;
  json.begin_object().member("to", o.output).member("steps", result.steps);
  json.member("tokens", result.tokens).end_object();
  emit(context,
       "decrypted " + o.output + ": " + with_thousands(result.tokens) + " tokens of " +
           with_thousands(result.steps) + " steps\n",
       json.take());
  return 0;
}

int run_redact(const CommandContext& context, const Edit& o) {
  if (!o.decrypt.empty() && !(o.salt.empty() && o.encrypt.empty()))
    throw Error(ErrorCode::usage, "decrypt, or redact", "--decrypt");
  if (!o.decrypt.empty()) return run_decrypt(context, o);
  const RedactResult result = redact(o.inputs.front(), o.output, o.force, redact_options(o));
  const RedactionProof proof = prove_redacted(o.output);
  std::string text = "redacted " + o.output + ": " + with_thousands(result.tokens) + " tokens of " +
                     with_thousands(result.steps) + " steps and " +
                     with_thousands(result.text_bytes) + " bytes of text taken out\n  scanned " +
                     with_thousands(proof.chunks) + " chunks, " + with_thousands(proof.values) +
                     " values: " + with_thousands(proof.left.size()) + " left\n";
  JsonWriter json;
  json.begin_object().member("to", o.output).member("steps", result.steps);
  json.member("tokens", result.tokens).member("text_bytes", result.text_bytes);
  json.member("scanned_chunks", proof.chunks).member("scanned_values", proof.values);
  json.key("left").begin_array();
  for (const std::string& left : proof.left) {
    text += "  left: " + left + '\n';
    json.value(left);
  }
  json.end_array().end_object();
  emit(context, text, json.take());
  return proof.holds() ? 0 : 1;
}

CLI::App* add_edit(CLI::App& trace, CommandContext& context, const std::string& name,
                   const std::string& summary, const std::string& example,
                   const std::shared_ptr<Edit>& o, int (*run)(const CommandContext&, const Edit&)) {
  CLI::App* command = add_command(trace, context, name, summary, example);
  command->add_option("-o,--output", o->output, "Trace to write (.rdt)")->required();
  command->add_flag("--force", o->force, "Replace an existing file");
  on_run(command, context, [&context, o, run] { return run(context, *o); });
  return command;
}

}  // namespace

void add_trace_edit(CLI::App& trace, CommandContext& context) {
  const auto o = std::make_shared<Edit>();
  CLI::App* recover =
      add_edit(trace, context, "recover",
               "What a damaged or cut trace still holds; exit 1 when steps are lost",
               "redecode trace recover fleet.rdt -o whole.rdt", o, run_recover);
  recover->add_option("file", o->inputs, "Trace or folder of a set")->required()->expected(1);
  recover->add_option("--ring", o->rings,
                      "Ring files of a dead recorder; default: those that FILE.rings names");
  CLI::App* cut = add_edit(trace, context, "cut", "Part of a trace, able to be replayed by itself",
                           "redecode trace cut fleet.rdt --steps 100..200 -o part.rdt\n"
                           "  redecode trace cut fleet.rdt --sessions 7 -o session.rdt",
                           o, run_cut);
  cut->add_option("file", o->inputs, "Trace or folder of a set")->required()->expected(1);
  cut->add_option("--steps", o->steps, "Steps A..B, both inclusive");
  cut->add_option("--time", o->time, "Seconds A..B since the recording began, e.g. 1.5s..20s");
  cut->add_option("--requests", o->requests, "Rows of these requests only")->delimiter(',');
  cut->add_option("--sessions", o->sessions, "Rows of these sessions only")->delimiter(',');
  CLI::App* redact = add_edit(trace, context, "redact",
                              "A trace without anybody's words, and the proof; or an encrypted one",
                              "redecode trace redact fleet.rdt -o shareable.rdt", o, run_redact);
  redact->add_option("file", o->inputs, "Trace or folder of a set")->required()->expected(1);
  redact->add_option("--hashes", o->salt,
                     "Keep hashes of full pages of tokens, under the salt in this file");
  redact->add_option("--encrypt", o->encrypt,
                     "Keep tokens and texts encrypted with the key in this file");
  redact->add_option("--decrypt", o->decrypt, "Put them back: the key file of an encrypted trace");
  CLI::App* merge = add_edit(trace, context, "merge", "Parts of one recording as one trace",
                             "redecode trace merge a.rdt b.rdt -o whole.rdt", o, run_merge);
  merge->add_option("files", o->inputs, "Traces, in any order")->required();
}

}  // namespace redecode
