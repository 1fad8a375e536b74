// engine/price/device_spec.h - DeviceSpec: a GPU as a few numbers, for predicting time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace redecode {

struct DeviceSpec {
  std::string name;
  double read_gb_per_s = 0;  // that a streaming kernel reaches, not the data sheet's
  double write_gb_per_s = 0;
  double vector_tflops = 0;  // fp32 fused multiply-adds, counted as two
  double tensor_tflops = 0;  // dense bf16
  uint32_t multiprocessors = 0;
  double kernel_floor_us = 0;  // from start to end of a kernel that does nothing
  double graph_node_us = 0;    // between two dependent nodes of a graph
  double eager_launch_us = 0;  // that the host takes to issue a kernel
  double event_us = 0;         // that an edge between streams adds
  // A kernel of fewer bytes than this cannot draw the whole bandwidth.
  double saturating_kb = 0;
};

// Built in: "h200" and "b200". Errors: usage for another name.
DeviceSpec known_device(std::string_view name);
// Text of `key = value` lines with the names above; '#' starts a comment, keys left out are those
// of h200. Errors: corrupt, with file and line.
DeviceSpec parse_device(std::string_view text, const std::string& file);
// A name that is built in, or a file. Errors: as above; environment when it cannot be read; limit
// above 64 KiB.
DeviceSpec load_device(const std::string& name_or_path);

}  // namespace redecode
