// Runs a fuzz target on the inputs of a folder, without a fuzzer: replay_corpus FOLDER...
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      const std::vector<uint8_t> exact(bytes.begin(), bytes.end());  // so that a read behind shows
      std::fprintf(stderr, "%s\n", entry.path().c_str());            // the last one is the culprit
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
      ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;
}
