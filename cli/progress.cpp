#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/output.h"
#include "traces/thousands.h"

namespace redecode {
namespace {

constexpr auto kTerminalEvery = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(10);
constexpr uint64_t kBarColumns = 24;

std::string left_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(std::clamp(seconds, 0.0, 359999.0)));
  char text[32];
  std::snprintf(text, sizeof text, "%u:%02u left", static_cast<unsigned>(whole / 60),
                static_cast<unsigned>(whole % 60));
  return text;
}

}  // namespace

Progress::Progress(const CommandContext& context, std::string label, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      silent_(context.quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
}

std::string Progress::line(uint64_t done, uint64_t total, double seconds) const {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string out = label_ + ": ";
  if (total != 0) {
    const uint64_t filled = std::min(done, total) * kBarColumns / total;
    if (terminal_)
      out += "[" + std::string(filled, '#') + std::string(kBarColumns - filled, '.') + "] ";
    out += std::to_string(std::min(done, total) * 100 / total) + " %, ";
  }
  out += with_thousands(done) + " " + unit_ + ", " + tenths(rate) + "/s";
  if (total > done && rate > 0) out += ", " + left_text(static_cast<double>(total - done) / rate);
  return out;
}

void Progress::update(uint64_t done, uint64_t total) {
  if (silent_) return;
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kTerminalEvery) : Clock::duration(kLineEvery)))
    return;
  last_ = now;
  shown_ = true;
  const std::string text = line(done, total, std::chrono::duration<double>(now - start_).count());
  if (terminal_)
    std::fprintf(stderr, "\r%s\x1b[K", text.c_str());
  else
    std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace redecode
