#include "cli/explain.h"

#include <memory>
#include <string>

#include "cli/output.h"
#include "engine/checks/explanations.h"
#include "traces/error.h"

namespace redecode {
namespace {

std::string_view first_line(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t colon = line.find(": ");
  return colon == std::string_view::npos ? line : line.substr(colon + 2);
}

int list_checks(const CommandContext& context) {
  std::string text = "Checks; redecode explain NAME tells more:\n";
  JsonWriter json;
  json.begin_object().key("checks").begin_array();
  for (const Explanation& e : explanations()) {
    std::string name(e.name);
    name.resize(std::max<size_t>(name.size() + 2, 18), ' ');
    text += "  " + name + std::string(first_line(e.text)) + '\n';
    json.begin_object().member("name", e.name).member("line", first_line(e.text)).end_object();
  }
  json.end_array().end_object();
  emit(context, text, json.take());
  return 0;
}

int run_explain(const CommandContext& context, const std::string& name) {
  if (name.empty()) return list_checks(context);
  const Explanation* e = find_explanation(name);
  if (e == nullptr) {
    std::string known;
    for (const Explanation& x : explanations())
      known += (known.empty() ? "" : ", ") + std::string(x.name);
    throw Error(ErrorCode::usage, "there is no such check; there are " + known,
                "explain " + name);
  }
  JsonWriter json;
  json.begin_object().member("name", e->name).member("text", e->text).end_object();
  emit(context, e->text, json.take());
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, context, "explain",
                                  "What a check looks for, and how to mend what it finds",
                                  "redecode explain pool-lifetime\n  redecode explain");
  auto name = std::make_shared<std::string>();
  command->add_option("check", *name, "Name of a check; without, all are listed");
  on_run(command, context, [&context, name] { return run_explain(context, *name); });
}

}  // namespace redecode
