// tests/cli/run_binary.h - runs the built binary in a process of its own, and the files that the
// tests share.
#pragma once
#include <sys/types.h>
#include <filesystem>
#include <string>
#include <vector>

namespace redecode::test {

struct Outcome {
  int code = -1;   // exit status; -1 when a signal ended it
  int signal = 0;  // that ended it
  std::string out, err;
};

using Words = std::vector<std::string>;

// With a clean environment: no REDECODE_* but those in `environment` ("NAME=value").
Outcome run_binary(const Words& arguments, const Words& environment = {});

// The same without waiting; finish() waits. stdout and stderr go to files.
class Started {
 public:
  Started(const Words& arguments, const Words& environment);
  ~Started();
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  pid_t pid() const { return pid_; }
  Outcome finish();

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
};

// True when `text` is exactly one JSON object and a line end.
bool is_one_json_object(const std::string& text);

// The value of a member of a flat place in `json`, as its text: "digest" -> "0123...".
std::string json_member(const std::string& json, const std::string& name);

// A small trace and runs of it, made once a process; paths as text.
struct Samples {
  Samples();
  std::string folder;
  std::string trace, golden, other_trace, other_run, llama_trace;
  std::string file(const std::string& name) const { return folder + "/" + name; }
};
const Samples& samples();

// Arguments of a recording that takes a moment.
Words small_recording(const std::string& output);

// `base` and `more` in one list.
Words with(Words base, const Words& more);

}  // namespace redecode::test
