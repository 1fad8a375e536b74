#include "traces/mode.h"

#include <array>
#include <utility>

namespace redecode {
namespace {

template <class E, size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<StreamMode, 2> kStreams = {
    {{StreamMode::single, "single"}, {StreamMode::multi, "multi"}}};
constexpr Names<CaptureMode, 2> kCapture = {
    {{CaptureMode::eager, "eager"}, {CaptureMode::graph, "graph"}}};
constexpr Names<Backend, 2> kBackend = {{{Backend::sim, "sim"}, {Backend::cuda, "cuda"}}};
constexpr Names<IndexKeyType, 3> kIndexKey = {
    {{IndexKeyType::bf16, "bf16"}, {IndexKeyType::fp8, "fp8"}, {IndexKeyType::fp4, "fp4"}}};
constexpr Names<TopkVersion, 2> kTopk = {{{TopkVersion::v1, "v1"}, {TopkVersion::v2, "v2"}}};
constexpr Names<KernelSet, 2> kKernels = {{{KernelSet::exact, "exact"}, {KernelSet::fast, "fast"}}};
constexpr Names<Feedback, 2> kFeedback = {
    {{Feedback::recorded, "recorded"}, {Feedback::own, "own"}}};
constexpr Names<Probe, 3> kProbe = {
    {{Probe::none, "none"}, {Probe::ops, "ops"}, {Probe::values, "values"}}};

template <class E, size_t N>
std::string_view name_of(const Names<E, N>& names, E value) {
  for (const auto& [e, name] : names)
    if (e == value) return name;
  return "unknown";
}

template <class E, size_t N>
bool find(const Names<E, N>& names, std::string_view text, E& out) {
  for (const auto& [e, name] : names) {
    if (name == text) {
      out = e;
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view to_text(StreamMode v) { return name_of(kStreams, v); }
std::string_view to_text(CaptureMode v) { return name_of(kCapture, v); }
std::string_view to_text(Backend v) { return name_of(kBackend, v); }
std::string_view to_text(IndexKeyType v) { return name_of(kIndexKey, v); }
std::string_view to_text(TopkVersion v) { return name_of(kTopk, v); }
std::string_view to_text(KernelSet v) { return name_of(kKernels, v); }
std::string_view to_text(Feedback v) { return name_of(kFeedback, v); }
std::string_view to_text(Probe v) { return name_of(kProbe, v); }

bool from_text(std::string_view text, StreamMode& out) { return find(kStreams, text, out); }
bool from_text(std::string_view text, CaptureMode& out) { return find(kCapture, text, out); }
bool from_text(std::string_view text, Backend& out) { return find(kBackend, text, out); }
bool from_text(std::string_view text, IndexKeyType& out) { return find(kIndexKey, text, out); }
bool from_text(std::string_view text, TopkVersion& out) { return find(kTopk, text, out); }
bool from_text(std::string_view text, KernelSet& out) { return find(kKernels, text, out); }
bool from_text(std::string_view text, Feedback& out) { return find(kFeedback, text, out); }
bool from_text(std::string_view text, Probe& out) { return find(kProbe, text, out); }

std::string describe(const Mode& mode) {
  std::string out;
  out += to_text(mode.index_key);
  out += " keys, ";
  out += to_text(mode.capture);
  out += ", ";
  out += to_text(mode.streams);
  out += "-stream, ";
  out += mode.order.size() > 40 ? mode.order.substr(0, 37) + "..." : mode.order;
  out += ", topk ";
  out += to_text(mode.topk);
  for (const auto& name : mode.inject) out += ", inject " + name;
  return out;
}

}  // namespace redecode
