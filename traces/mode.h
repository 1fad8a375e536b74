// traces/mode.h - Mode: the conditions under which a step is decoded, as plain values.
//
// A mode is printed into the header of every file and read back from there; nothing in it may
// change the result of a correct engine. Every field is a command line flag and an environment
// variable:
// --streams single is REDECODE_STREAMS=single; the flag wins.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redecode {

enum class StreamMode : uint8_t { single, multi };
enum class CaptureMode : uint8_t { eager, graph };
enum class Backend : uint8_t { sim, cuda };
enum class IndexKeyType : uint8_t { bf16, fp8, fp4 };
enum class TopkVersion : uint8_t { v1, v2 };
enum class KernelSet : uint8_t { exact, fast };
// recorded: input tokens come from the trace, so each step is judged on its own;
// own: a request's input is the token it sampled itself, so errors cascade as in production.
enum class Feedback : uint8_t { recorded, own };
enum class Probe : uint8_t { none, ops, values };

struct Mode {
  StreamMode streams = StreamMode::single;
  CaptureMode capture = CaptureMode::eager;
  Backend backend = Backend::sim;
  IndexKeyType index_key = IndexKeyType::bf16;
  TopkVersion topk = TopkVersion::v2;
  KernelSet kernels = KernelSet::exact;
  Feedback feedback = Feedback::recorded;
  Probe probe = Probe::none;
  std::string order = "fifo";       // grammar in engine/device/order.h
  std::vector<std::string> inject;  // defect names, sorted, without repeats
  bool poison = false;              // fill freed memory with 0xff
  bool full_logits = false;         // keep every row's logits [vocab] in the run
  bool operator==(const Mode&) const = default;
};

std::string_view to_text(StreamMode);
std::string_view to_text(CaptureMode);
std::string_view to_text(Backend);
std::string_view to_text(IndexKeyType);
std::string_view to_text(TopkVersion);
std::string_view to_text(KernelSet);
std::string_view to_text(Feedback);
std::string_view to_text(Probe);

// Set `out` from text; false when the text names no value.
bool from_text(std::string_view text, StreamMode& out);
bool from_text(std::string_view text, CaptureMode& out);
bool from_text(std::string_view text, Backend& out);
bool from_text(std::string_view text, IndexKeyType& out);
bool from_text(std::string_view text, TopkVersion& out);
bool from_text(std::string_view text, KernelSet& out);
bool from_text(std::string_view text, Feedback& out);
bool from_text(std::string_view text, Probe& out);

// "bf16 keys, graph, multi-stream, seed:7, topk v2": one line for people.
std::string describe(const Mode& mode);

}  // namespace redecode
