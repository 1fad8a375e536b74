#include "cli/check_litmus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "cli/output.h"
#include "engine/litmus/verdict.h"
#include "traces/error.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 100'000;

std::vector<std::string> litmus_files(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.path().extension() != ".litmus" || !entry.is_regular_file()) continue;
    if (files.size() == kMostFiles)
      throw Error(ErrorCode::limit, "more than " + with_thousands(kMostFiles) + " litmus files",
                  path);
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

std::string joined(const std::vector<LitmusExpect>& verdicts) {
  std::string out;
  for (const LitmusExpect& v : verdicts) out += (out.empty() ? "" : "; ") + to_text(v);
  return out.empty() ? "nothing" : out;
}

std::string report_text(const LitmusReport& r) {
  std::string out = r.name + "  " + joined(r.found);
  if (!r.has_expectation)
    out += "  (nothing is expected of this file)";
  else if (r.found != r.expected)
    out += "  but the file expects " + joined(r.expected);
  else
    out += r.only_values_show ? "  as expected: only values can show it" : "  as expected";
  if (r.has_fix)
    out += r.fixed_found.empty() ? ", clean after its fix"
                                 : ", NOT clean after its fix: " + joined(r.fixed_found);
  out += '\n';
  for (const std::string& sentence : r.sentences) out += "  " + sentence + '\n';
  for (const std::string& sentence : r.fixed_sentences)
    out += "  after the fix: " + sentence + '\n';
  return out;
}

void verdicts_json(const char* key, const std::vector<LitmusExpect>& verdicts, JsonWriter& json) {
  json.key(key).begin_array();
  for (const LitmusExpect& v : verdicts) json.value(to_text(v));
  json.end_array();
}

void report_json(const LitmusReport& r, JsonWriter& json) {
  json.begin_object();
  json.member("file", r.path).member("scenario", r.name).member("scope", r.scope);
  verdicts_json("findings", r.found, json);
  verdicts_json("expected", r.expected, json);
  json.member("match", r.found == r.expected).member("only_values_show", r.only_values_show);
  json.key("after_fix");
  if (r.has_fix) {
    json.begin_array();
    for (const LitmusExpect& v : r.fixed_found) json.value(to_text(v));
    json.end_array();
  } else {
    json.null();
  }
  json.key("details").begin_array();
  for (size_t i = 0; i < r.findings.size(); ++i) {
    const Finding& f = r.findings[i];
    json.begin_object().member("kind", to_text(f.kind)).member("check", check_of(f));
    json.member("severity", to_text(f.severity)).member("sentence", r.sentences[i]).end_object();
  }
  json.end_array().end_object();
}

bool good(const LitmusReport& r) { return r.matches(); }

}  // namespace

bool is_litmus_path(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::path(path).extension() == ".litmus";
  for (const auto& entry : fs::recursive_directory_iterator(path, error))
    if (entry.path().extension() == ".litmus") return true;
  return false;
}

int check_litmus_path(const CommandContext& context, const std::string& path,
                      const PictureOptions& pictures) {
  const bool folder = fs::is_directory(path);
  if (folder && pictures.any())
    throw Error(ErrorCode::usage, "pictures are of one litmus file", "--timeline, --svg");
  std::vector<LitmusReport> reports;
  for (const std::string& file : litmus_files(path))
    reports.push_back(report_litmus(load_litmus(file), file));
  const auto matched = static_cast<uint64_t>(std::ranges::count_if(reports, good));
  std::string text;
  for (const LitmusReport& r : reports) text += report_text(r);
  if (pictures.any())
    text += write_pictures(pictures, lower(load_litmus(path)).program, Submission::eager, 0,
                           reports.front().findings);
  JsonWriter json;
  if (folder) {
    text += with_thousands(matched) + " of " + with_thousands(reports.size()) +
            " files give what they expect\n";
    json.begin_object().key("files").begin_array();
  }
  for (const LitmusReport& r : reports) report_json(r, json);
  if (folder)
    json.end_array().member("checked", reports.size()).member("matched", matched).end_object();
  emit(context, text, json.take());
  return matched == reports.size() ? 0 : 1;
}

int format_litmus_file(const CommandContext& context, const std::string& path) {
  load_litmus(path);  // says what is wrong, and bounds its size
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string formatted = format_litmus(text, path);
  JsonWriter json;
  json.begin_object().member("file", path).member("text", formatted).end_object();
  emit(context, formatted, json.take());
  return 0;
}

}  // namespace redecode
