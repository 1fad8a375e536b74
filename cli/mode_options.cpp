#include "cli/mode_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/decoder/defects.h"
#include "engine/device/order.h"
#include "traces/error.h"
#include "traces/json_writer.h"
#include "traces/limits.h"

namespace redecode {
namespace {

struct ModeField {
  const char* flags;  // as CLI11 names them
  const char* flag;
  const char* variable;
  const char* values;
  const char* summary;
  bool is_switch;
  void (*set)(Mode& mode, const std::string& text, const char* values);
};

[[noreturn]] void bad_value(const std::string& text, const char* values) {
  throw Error(ErrorCode::usage, "'" + text + "' is not one of " + values);
}

template <auto Member>
void set_choice(Mode& mode, const std::string& text, const char* values) {
  if (!from_text(text, mode.*Member)) bad_value(text, values);
}

template <auto Member>
void set_switch(Mode& mode, const std::string& text, const char* values) {
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (is({"on", "true", "yes", "1"}))
    mode.*Member = true;
  else if (is({"off", "false", "no", "0"}))
    mode.*Member = false;
  else
    bad_value(text, values);
}

void set_order(Mode& mode, const std::string& text, const char*) {
  make_order(text);
  mode.order = text;
}

void set_inject(Mode& mode, const std::string& text, const char*) {
  mode.inject.clear();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, end - at);
    at = end + 1;
    if (find_defect(name) == nullptr)
      throw Error(ErrorCode::usage,
                  "no defect is called '" + name + "'. Defects:\n" + defect_help());
    mode.inject.push_back(std::move(name));
  }
  std::ranges::sort(mode.inject);
  mode.inject.erase(std::unique(mode.inject.begin(), mode.inject.end()), mode.inject.end());
}

constexpr size_t kInject = 9;

constexpr std::array<ModeField, ModeOptions::kFieldCount> kFields = {{
    {"--streams", "--streams", "REDECODE_STREAMS", "single, multi",
     "One stream, or main and five side streams", false, set_choice<&Mode::streams>},
    {"--capture", "--capture", "REDECODE_CAPTURE", "eager, graph",
     "Commands one by one, or a captured graph a bucket", false, set_choice<&Mode::capture>},
    {"--backend", "--backend", "REDECODE_BACKEND", "sim, cuda", "Simulated device, or a GPU", false,
     set_choice<&Mode::backend>},
    {"--index-k,--index-key", "--index-k", "REDECODE_INDEX_K", "bf16, fp8, fp4",
     "Type of index keys", false, set_choice<&Mode::index_key>},
    {"--topk", "--topk", "REDECODE_TOPK", "v1, v2", "Version of the top-k kernel", false,
     set_choice<&Mode::topk>},
    {"--kernels", "--kernels", "REDECODE_KERNELS", "exact, fast", "Kernel set", false,
     set_choice<&Mode::kernels>},
    {"--feedback", "--feedback", "REDECODE_FEEDBACK", "recorded, own",
     "Input tokens from the trace, or own samples", false, set_choice<&Mode::feedback>},
    {"--probe", "--probe", "REDECODE_PROBE", "none, ops, values",
     "What is kept of each op's outputs", false, set_choice<&Mode::probe>},
    {"--order", "--order", "REDECODE_ORDER", "fifo, seed:N, paced:N, pct:N,D, before:S, script:S",
     "Which ready command runs next", false, set_order},
    {"--inject", "--inject", "REDECODE_INJECT", "a defect's name, repeatable",
     "Put a documented defect into the engine", false, set_inject},
    {"--poison,!--no-poison", "--poison", "REDECODE_POISON", "on, off",
     "Fill freed memory with 0xff", true, set_switch<&Mode::poison>},
    {"--full-logits,!--no-full-logits", "--full-logits", "REDECODE_FULL_LOGITS", "on, off",
     "Keep every row's logits", true, set_switch<&Mode::full_logits>},
}};

void set_field(const ModeField& field, Mode& mode, const std::string& text, const char* context) {
  try {
    field.set(mode, text, field.values);
  } catch (const Error& e) {
    throw Error(e.code(), e.context().empty() ? e.message() : e.what(), context);
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

}  // namespace

void ModeOptions::add_to(CLI::App& command) {
  for (size_t i = 0; i < kFieldCount; ++i) {
    const ModeField& field = kFields[i];
    const std::string help = std::string(field.summary) + ": " + field.values;
    if (field.is_switch)
      options_[i] = command.add_flag(field.flags, texts_[i], help);
    else if (i == kInject)
      options_[i] = command.add_option(field.flags, inject_, help)->allow_extra_args(false);
    else
      options_[i] = command.add_option(field.flags, texts_[i], help);
    options_[i]->group("Mode");
  }
}

Mode ModeOptions::resolve(const Mode& defaults) const {
  Mode mode = defaults;
  for (size_t i = 0; i < kFieldCount; ++i) {
    const ModeField& field = kFields[i];
    if (options_[i] != nullptr && options_[i]->count() != 0)
      set_field(field, mode, i == kInject ? joined(inject_) : texts_[i], field.flag);
    else if (const char* value = std::getenv(field.variable); value != nullptr && *value != '\0')
      set_field(field, mode, value, field.variable);
  }
  return mode;
}

std::vector<std::string> environment_entries() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("REDECODE_") && text.size() <= limits::kNameBytes) out.emplace_back(text);
  }
  std::ranges::sort(out);
  if (out.size() > limits::kListedTexts) out.resize(limits::kListedTexts);
  return out;
}

std::string mode_json(const Mode& mode) {
  JsonWriter json;
  json.begin_object();
  json.member("streams", to_text(mode.streams)).member("capture", to_text(mode.capture));
  json.member("backend", to_text(mode.backend)).member("index_key", to_text(mode.index_key));
  json.member("topk", to_text(mode.topk)).member("kernels", to_text(mode.kernels));
  json.member("feedback", to_text(mode.feedback)).member("probe", to_text(mode.probe));
  json.member("order", mode.order);
  json.key("inject").begin_array();
  for (const std::string& name : mode.inject) json.value(name);
  json.end_array();
  json.member("poison", mode.poison).member("full_logits", mode.full_logits);
  json.end_object();
  return json.take();
}

}  // namespace redecode
