#include "engine/price/device_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "traces/error.h"

namespace redecode {
namespace {

// Read bandwidth, launch and node cost as measured on an H200 (97 % of 4.8 TB/s read by a
// streaming kernel); the rest from the data sheets.
DeviceSpec h200() {
  DeviceSpec d;
  d.name = "h200";
  d.read_gb_per_s = 4450;
  d.write_gb_per_s = 4000;
  d.vector_tflops = 60;
  d.tensor_tflops = 800;
  d.multiprocessors = 132;
  d.kernel_floor_us = 2.0;
  d.graph_node_us = 1.2;
  d.eager_launch_us = 3.5;
  d.event_us = 0.8;
  d.saturating_kb = 4096;
  return d;
}

DeviceSpec b200() {
  DeviceSpec d = h200();
  d.name = "b200";
  d.read_gb_per_s = 7400;
  d.write_gb_per_s = 6600;
  d.vector_tflops = 74;
  d.tensor_tflops = 2000;
  d.multiprocessors = 148;
  d.kernel_floor_us = 1.9;
  d.saturating_kb = 6144;
  return d;
}

double* field_of(DeviceSpec& d, std::string_view key) {
  const std::pair<std::string_view, double*> fields[] = {
      {"read_gb_per_s", &d.read_gb_per_s},     {"write_gb_per_s", &d.write_gb_per_s},
      {"vector_tflops", &d.vector_tflops},     {"tensor_tflops", &d.tensor_tflops},
      {"kernel_floor_us", &d.kernel_floor_us}, {"graph_node_us", &d.graph_node_us},
      {"eager_launch_us", &d.eager_launch_us}, {"event_us", &d.event_us},
      {"saturating_kb", &d.saturating_kb},
  };
  for (const auto& [name, value] : fields)
    if (name == key) return value;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

double number(std::string_view text, const std::string& where) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !std::isfinite(value) || value <= 0 || value > 1e12)
    throw Error(ErrorCode::corrupt, "'" + copy + "' is no positive number", where);
  return value;
}

}  // namespace

DeviceSpec known_device(std::string_view name) {
  if (name == "h200") return h200();
  if (name == "b200") return b200();
  throw Error(ErrorCode::usage, "there are h200 and b200, or a file",
              "device '" + std::string(name) + "'");
}

DeviceSpec parse_device(std::string_view text, const std::string& file) {
  DeviceSpec d = h200();
  d.name = file;
  size_t line_number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, end - from);
    from = end + 1;
    const std::string where = file + ":" + std::to_string(++line_number);
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      throw Error(ErrorCode::corrupt, "`key = value` is wanted", where);
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (key == "name") {
      d.name = value;
    } else if (key == "multiprocessors") {
      d.multiprocessors = static_cast<uint32_t>(std::min(number(value, where), 1e6));
    } else if (double* field = field_of(d, key)) {
      *field = number(value, where);
    } else {
      throw Error(ErrorCode::corrupt, "unknown key '" + std::string(key) + "'", where);
    }
  }
  return d;
}

DeviceSpec load_device(const std::string& name_or_path) {
  if (name_or_path == "h200" || name_or_path == "b200") return known_device(name_or_path);
  constexpr size_t kMostBytes = 65'536;
  std::ifstream in(name_or_path, std::ios::binary);
  if (!in) return known_device(name_or_path);
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw Error(ErrorCode::environment, "cannot be read", name_or_path);
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes)
    throw Error(ErrorCode::limit, "a device description of more than 65,536 bytes", name_or_path);
  return parse_device(text, name_or_path);
}

}  // namespace redecode
