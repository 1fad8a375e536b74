// cli/jobs.h - independent jobs on a few threads; results do not depend on how many.
#pragma once
#include <cstddef>
#include <functional>

namespace redecode {

// Calls job(i) once for each i in [0, count), on up to `threads` threads, the caller's included.
// The first exception ends the rest and is thrown again.
void run_jobs(size_t count, int threads, const std::function<void(size_t)>& job);

}  // namespace redecode
