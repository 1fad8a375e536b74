// cli/descriptors.h - as many open files and connections as the system allows.
#pragma once
#include <sys/resource.h>

namespace redecode {

// Raises the soft limit to the hard one; harmless where that fails.
inline void raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace redecode
