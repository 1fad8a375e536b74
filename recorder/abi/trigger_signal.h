// recorder/abi/trigger_signal.h - a signal that sets a flag, for recorders that keep the last
// steps.
#pragma once
#include <atomic>

namespace redecode {

// From now on `signal` sets `flag`; a later call for the same signal replaces the flag. The flag
// must outlive every such signal: a recorder calls forget_signals when it closes.
// Errors: usage (no signal that can be caught).
void watch_signal(int signal, std::atomic<bool>& flag);
void forget_signals(const std::atomic<bool>& flag);

}  // namespace redecode
