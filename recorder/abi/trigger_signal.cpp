#include "recorder/abi/trigger_signal.h"

#include <array>
#include <charconv>
#include <csignal>
#include <string>
#include <string_view>

#include "recorder/abi/recorder.h"
#include "traces/error.h"

namespace redecode {
namespace {

constexpr int kSignals = 65;

// A handler is given nothing but the signal's number.
std::array<std::atomic<std::atomic<bool>*>, kSignals>& flags() {
  static std::array<std::atomic<std::atomic<bool>*>, kSignals> table{};
  return table;
}

void on_signal(int signal) {
  if (signal <= 0 || signal >= kSignals) return;
  if (std::atomic<bool>* flag = flags()[static_cast<size_t>(signal)].load()) flag->store(true);
}

[[noreturn]] void refuse(std::string_view part) {
  throw Error(
      ErrorCode::usage,
      "a trigger is 'token:N', 'nonfinite', 'step_over_ms:N' or 'signal:N', joined by commas",
      "'" + std::string(part) + "'");
}

uint32_t number(std::string_view text, std::string_view part) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > INT32_MAX)
    refuse(part);
  return value;
}

void read_part(std::string_view part, RecorderShared& shared, int& signal) {
  const size_t colon = part.find(':');
  const std::string_view name = part.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
  if (part == "nonfinite")
    shared.trigger_nonfinite = true;
  else if (name == "token")
    shared.trigger_token = number(value, part);
  else if (name == "step_over_ms")
    shared.trigger_step_ns = uint64_t{number(value, part)} * 1'000'000;
  else if (name == "signal")
    signal = static_cast<int>(number(value, part));
  else
    refuse(part);
}

}  // namespace

void watch_signal(int signal, std::atomic<bool>& flag) {
  if (signal <= 0 || signal >= kSignals)
    throw Error(ErrorCode::usage, "there is no signal " + std::to_string(signal));
  flags()[static_cast<size_t>(signal)].store(&flag);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, nullptr) != 0)
    throw Error(ErrorCode::usage, "signal " + std::to_string(signal) + " cannot be caught");
}

void forget_signals(const std::atomic<bool>& flag) {
  for (auto& entry : flags())
    if (entry.load() == &flag) entry.store(nullptr);
}

void read_triggers(std::string_view text, RecorderShared& shared, int& signal) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    read_part(text.substr(0, comma), shared, signal);
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace redecode
