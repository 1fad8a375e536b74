#include "cli/doctor.h"

#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "engine/kernels/exec.h"
#include "replayer/engine_instance.h"

namespace redecode {
namespace {

// Label, value and, in JSON, the same under a name.
struct Fact {
  const char* name;
  const char* label;
  std::string value;
};

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string supported_isas() {
  std::string out;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512})
    if (isa_supported(isa)) out += (out.empty() ? "" : ", ") + std::string(isa_name(isa));
  return out;
}

std::string mebibytes(int pages_name) {
  const long pages = sysconf(pages_name), page_bytes = sysconf(_SC_PAGE_SIZE);
  if (pages < 0 || page_bytes < 0) return "unknown";
  return std::to_string(static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) >> 20) +
         " MiB";
}

std::string xxhash_version() {
  const unsigned version = XXH_versionNumber();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<Fact> facts() {
  return {
      {"version", "version", writer_name()},
      {"build_type", "build", REDECODE_BUILD_TYPE},
      {"compiler", "compiler", __VERSION__},
      {"cpu", "CPU", cpu_name()},
      {"isa", "ISA in use", isa_name(best_isa())},
      {"isas", "ISAs", supported_isas()},
      {"threads", "CPU threads", std::to_string(std::thread::hardware_concurrency())},
      {"memory", "memory", mebibytes(_SC_PHYS_PAGES)},
      {"memory_free", "memory free", mebibytes(_SC_AVPHYS_PAGES)},
      {"sim_backend", "sim backend", "built, runs anywhere"},
      {"cuda_backend", "CUDA backend", REDECODE_HAS_CUDA != 0 ? "built" : "not built"},
      {"capnp", "Cap'n Proto", REDECODE_CAPNP_VERSION},
      {"zstd", "zstd", ZSTD_versionString()},
      {"xxhash", "xxHash", xxhash_version()},
      {"cli11", "CLI11", CLI11_VERSION},
  };
}

int run_doctor(const CommandContext& context) {
  std::string text;
  JsonWriter json;
  json.begin_object();
  for (const Fact& fact : facts()) {
    text += labelled(fact.label, fact.value);
    json.member(fact.name, fact.value);
  }
  json.end_object();
  emit(context, text, json.take());
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, context, "doctor", "What this machine and this build can do",
                                  "redecode doctor --json");
  on_run(command, context, [&context] { return run_doctor(context); });
}

}  // namespace redecode
