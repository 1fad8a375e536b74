#include "cli/signals.h"

#include <csignal>

namespace redecode {
namespace {

// A handler has no argument to carry it.
std::atomic<bool>& stop_flag() {
  static std::atomic<bool> flag{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  return flag;
}

void on_signal(int) { stop_flag().store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& install_signal_handlers() {
  std::atomic<bool>& flag = stop_flag();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return flag;
}

}  // namespace redecode
