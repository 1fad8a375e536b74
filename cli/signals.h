// cli/signals.h - SIGINT and SIGTERM as a flag that commands poll; SIGPIPE ignored.
#pragma once
#include <atomic>

namespace redecode {

// Installs the handlers; call once. The flag is set by the first signal; a second one ends the
// process as it would have without us.
const std::atomic<bool>& install_signal_handlers();

}  // namespace redecode
