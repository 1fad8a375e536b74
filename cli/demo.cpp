#include "cli/demo.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>

#include "cli/demo_story.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "engine/decoder/defects.h"
#include "engine/device/order.h"
#include "traces/error.h"

namespace redecode {
namespace {

// A folder that goes when it is left, unless it was asked for.
class DemoFolder {
 public:
  explicit DemoFolder(const std::string& keep) : kept_(!keep.empty()) {
    path_ = kept_ ? std::filesystem::path(keep)
                  : std::filesystem::temp_directory_path() /
                        ("redecode-demo-" + std::to_string(getpid()));
    std::error_code failure;
    std::filesystem::create_directories(path_, failure);
    if (failure)
      throw Error(ErrorCode::environment, "cannot create the folder: " + failure.message(),
                  path_.string());
  }
  ~DemoFolder() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  DemoFolder(const DemoFolder&) = delete;
  DemoFolder& operator=(const DemoFolder&) = delete;
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  bool kept() const { return kept_; }

 private:
  std::filesystem::path path_;
  bool kept_;
};

struct DemoFlags {
  DemoOptions options;
  std::string keep;
};

std::string next_steps(const DemoFlags& flags, const DemoResult& result, const std::string& trace) {
  if (flags.keep.empty() || !result.finding) return "";
  const Mode& mode = result.cells[*result.worst].mode;
  const std::string step = std::to_string(result.finding->divergence.step);
  return "By hand:\n  redecode replay " + trace + " --index-k " +
         std::string(to_text(mode.index_key)) + " --capture " + std::string(to_text(mode.capture)) +
         " --streams " + std::string(to_text(mode.streams)) + " --inject " + flags.options.defect +
         " --steps " + step + ".." + step + " --order '" + result.finding->order + "'\n";
}

int run(CommandContext& context, DemoFlags& flags) {
  if (flags.options.agent.sessions == 0 || flags.options.agent.rounds == 0)
    throw Error(ErrorCode::usage, "needs at least one session and one round", "demo");
  make_order(flags.options.order);
  if (find_defect(flags.options.defect) == nullptr)
    throw Error(ErrorCode::usage, "no such defect. Defects:\n" + defect_help(),
                "--inject " + flags.options.defect);
  const DemoFolder folder(flags.keep);
  flags.options.trace_path = folder.file("demo.rdt").string();
  auto progress = std::make_unique<Progress>(context, "demo", "%");
  std::mutex guard;
  const auto report = [&](const std::string&, double share) {
    const std::lock_guard lock(guard);
    progress->update(static_cast<uint64_t>(share * 100.0), 100);
  };
  const DemoResult result =
      run_demo(flags.options, report, [&context] { return context.stopped(); });
  progress.reset();
  if (context.stopped()) return 1;
  emit(context,
       demo_text(flags.options, result) + next_steps(flags, result, flags.options.trace_path),
       demo_json(flags.options, result));
  return 0;
}

}  // namespace

void add_demo(CLI::App& app, CommandContext& context) {
  auto* command = add_command(
      app, context, "demo", "Record, replay in every mode, find the racing pair, show the fix",
      "redecode demo\n  redecode demo --sessions 20 --rounds 2 --keep demo-files --json");
  auto flags = std::make_shared<DemoFlags>();
  auto& o = flags->options;
  o.agent.sessions = 60;
  o.agent.rounds = 4;
  o.agent.context_tokens = 300;
  o.agent.max_tokens = 24;
  o.agent.concurrency = 24;
  command->add_option("--sessions", o.agent.sessions, "Agent sessions")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--rounds", o.agent.rounds, "Requests a session")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--ctx", o.agent.context_tokens, "Prompt tokens of the first round")
      ->capture_default_str();
  command->add_option("--max-tokens", o.agent.max_tokens, "Output tokens a request")
      ->capture_default_str();
  command->add_option("--concurrency", o.agent.concurrency, "Sessions at once")
      ->capture_default_str();
  command->add_option("--seed", o.agent.seed, "Of the workload")->capture_default_str();
  command->add_option("--model", o.model, "A dsv4 model")->capture_default_str();
  command->add_option("--inject", o.defect, "The defect to show")->capture_default_str();
  command->add_option("--order", o.order, "Order of every replay")->capture_default_str();
  command->add_option("--threads", o.threads, "Cells decoded at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--keep", flags->keep, "Keep the trace in this folder");
  on_run(command, context, [&context, flags] { return run(context, *flags); });
}

}  // namespace redecode
