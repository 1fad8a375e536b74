#include "tests/cli/run_binary.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "tests/traces/temp_folder.h"

namespace redecode::test {
namespace {

std::string read_text(const std::filesystem::path& path) {
  const auto bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

Words clean_environment(const Words& more) {
  Words out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("REDECODE_")) out.emplace_back(*entry);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "redecode-run-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  return name;
}

// Just enough of a JSON reader to say whether text is JSON.
class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_(text) {}
  bool object_and_line_end() {
    return !text_.empty() && text_[0] == '{' && value() && text_.substr(at_) == "\n";
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] == '\\') ++at_;
    }
    return take('"');
  }
  bool word() {
    for (const std::string_view literal : {"true", "false", "null"}) {
      if (text_.substr(at_, literal.size()) != literal) continue;
      at_ += literal.size();
      return true;
    }
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 ||
            std::string_view("+-.eE").find(text_[at_]) != std::string_view::npos))
      ++at_;
    return at_ != begin;
  }
  bool list(char end, bool members) {
    ++at_;
    if (take(end)) return true;
    do {
      if (members && !(string() && take(':'))) return false;
      if (!value()) return false;
    } while (take(','));
    return take(end);
  }
  bool value() {
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '{') return list('}', true);
    if (text_[at_] == '[') return list(']', false);
    return text_[at_] == '"' ? string() : word();
  }
  std::string_view text_;
  size_t at_ = 0;
};

Words other_workload(const std::string& output, const std::string& model) {
  return {"record", "-o",          output, "--model", model, "--sessions",
          "2",      "--rounds",    "1",    "--ctx",   "20",  "--max-tokens",
          "3",      "--max-batch", "4",    "--seed",  "9"};
}

void make(const Words& arguments) {
  const Outcome outcome = run_binary(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
}

}  // namespace

Started::Started(const Words& arguments, const Words& environment) : folder_(make_folder()) {
  Words words = {REDECODE_BINARY_DIR "/bin/redecode"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Words variables = clean_environment(environment);
  auto argv = pointers(words), envp = pointers(variables);
  posix_spawn_file_actions_t actions;
  REQUIRE(posix_spawn_file_actions_init(&actions) == 0);
  const std::string out = folder_ / "out", err = folder_ / "err";
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);
  const int failed =
      posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(failed == 0);
}

Started::~Started() {
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Outcome Started::finish() {
  int status = 0;
  REQUIRE(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  Outcome outcome;
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = read_text(folder_ / "out");
  outcome.err = read_text(folder_ / "err");
  return outcome;
}

Outcome run_binary(const Words& arguments, const Words& environment) {
  return Started(arguments, environment).finish();
}

bool is_one_json_object(const std::string& text) { return JsonCheck(text).object_and_line_end(); }

std::string json_member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const size_t at = json.find(key);
  if (at == std::string::npos) return {};
  size_t begin = at + key.size();
  const bool quoted = json[begin] == '"';
  if (quoted) ++begin;
  return json.substr(begin, json.find_first_of(quoted ? "\"" : ",}]", begin) - begin);
}

Words small_recording(const std::string& output) {
  return {"record", "-o",           output, "--sessions",  "5", "--rounds",  "2",      "--ctx",
          "30",     "--max-tokens", "6",    "--max-batch", "8", "--buckets", "1,2,4,8"};
}

Words with(Words base, const Words& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

Samples::Samples() : folder(make_folder()) {
  trace = file("trace.rdt");
  golden = file("golden.rdr");
  other_trace = file("other.rdt");
  other_run = file("other.rdr");
  llama_trace = file("llama.rdt");
  make(small_recording(trace));
  make({"replay", trace, "-o", golden});
  make(other_workload(other_trace, "dsv4-small"));
  make({"replay", other_trace, "-o", other_run});
  make(other_workload(llama_trace, "llama-small"));
}

const Samples& samples() {
  struct Holder : Samples {
    ~Holder() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  };
  static const Holder holder;
  return holder;
}

}  // namespace redecode::test
