// traces/convert/perfetto_proto.h - PerfettoWriter: the few messages of a Perfetto trace that an
// export needs, as protobuf bytes.
//
// A trace is a sequence of `packet` fields (1) of perfetto.protos.Trace. Field numbers are those of
// perfetto/trace/trace_packet.proto, track_event/track_event.proto, track_descriptor.proto,
// counter_descriptor.proto and debug_annotation.proto.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/convert/byte_sink.h"

namespace redecode {

// A protobuf message as it grows: fields in the order in which they are put.
class ProtoMessage {
 public:
  ProtoMessage& put(uint32_t field, uint64_t value);
  ProtoMessage& put(uint32_t field, std::string_view bytes);  // a string, or a message's bytes
  ProtoMessage& put_fixed64(uint32_t field, uint64_t value);
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

// Debug annotations of an event: names and values that the viewer shows with it.
class PerfettoArguments {
 public:
  PerfettoArguments& add(std::string_view name, uint64_t value);
  PerfettoArguments& add(std::string_view name, std::string_view text);
  // Events with the same flow are joined by an arrow, in order of time.
  PerfettoArguments& flow(uint64_t id);

 private:
  friend class PerfettoWriter;
  ProtoMessage event_;  // the field debug_annotations, once an annotation
};

class PerfettoWriter {
 public:
  // Times are given in units of `unit_ns` nanoseconds: microseconds, unless said otherwise.
  explicit PerfettoWriter(ByteSink& out, uint64_t unit_ns = 1000) : out_(out), unit_ns_(unit_ns) {}
  // Tracks are named before events use them. `parent` 0: none.
  void track(uint64_t uuid, std::string_view name, uint64_t parent = 0);
  void counter_track(uint64_t uuid, std::string_view name, uint64_t parent = 0);
  // Slices of a track nest; the last one begun ends first.
  void begin(uint64_t track, uint64_t time_us, std::string_view name,
             const PerfettoArguments& arguments = {});
  void end(uint64_t track, uint64_t time_us, const PerfettoArguments& arguments = {});
  void instant(uint64_t track, uint64_t time_us, std::string_view name,
               const PerfettoArguments& arguments = {});
  void count(uint64_t track, uint64_t time_us, uint64_t value);
  uint64_t events() const { return events_; }

 private:
  enum class Type : uint8_t { begin = 1, end = 2, instant = 3, counter = 4 };
  void descriptor(const ProtoMessage& track);
  void event(Type type, uint64_t track, uint64_t time_us, std::string_view name,
             const PerfettoArguments& arguments);
  void packet(const ProtoMessage& packet);

  uint64_t time_ns(uint64_t time_us) const;

  ByteSink& out_;
  uint64_t unit_ns_;
  uint64_t events_ = 0;
  bool first_ = true;
};

}  // namespace redecode
