#include "traces/convert/perfetto_proto.h"

#include <algorithm>

namespace redecode {
namespace {

enum TraceField : uint32_t { kPacket = 1 };
enum PacketField : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum DescriptorField : uint32_t { kUuid = 1, kName = 2, kParentUuid = 5, kCounter = 8 };
enum CounterField : uint32_t { kUnit = 3 };
enum EventField : uint32_t {
  kDebugAnnotations = 4,
  kType = 9,
  kTrackUuid = 11,
  kEventName = 23,
  kCounterValue = 30,
  kFlowIds = 47,
};
enum AnnotationField : uint32_t { kUintValue = 3, kStringValue = 6, kAnnotationName = 10 };

constexpr uint64_t kOneSequence = 1;
constexpr uint64_t kStateCleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED
constexpr uint64_t kUnitCount = 2;
constexpr uint64_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2;  // wire types

}  // namespace

void ProtoMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
  bytes_ += static_cast<char>(value);
}

ProtoMessage& ProtoMessage::put(uint32_t field, uint64_t value) {
  varint(uint64_t{field} << 3 | kVarint);
  varint(value);
  return *this;
}

ProtoMessage& ProtoMessage::put(uint32_t field, std::string_view bytes) {
  varint(uint64_t{field} << 3 | kLengthDelimited);
  varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

ProtoMessage& ProtoMessage::put_fixed64(uint32_t field, uint64_t value) {
  varint(uint64_t{field} << 3 | kFixed64);
  for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  return *this;
}

PerfettoArguments& PerfettoArguments::flow(uint64_t id) {
  event_.put_fixed64(kFlowIds, id);
  return *this;
}

PerfettoArguments& PerfettoArguments::add(std::string_view name, uint64_t value) {
  ProtoMessage annotation;
  annotation.put(kAnnotationName, name).put(kUintValue, value);
  event_.put(kDebugAnnotations, annotation.bytes());
  return *this;
}

PerfettoArguments& PerfettoArguments::add(std::string_view name, std::string_view text) {
  ProtoMessage annotation;
  annotation.put(kAnnotationName, name).put(kStringValue, text);
  event_.put(kDebugAnnotations, annotation.bytes());
  return *this;
}

uint64_t PerfettoWriter::time_ns(uint64_t time_us) const {
  return std::min(time_us, UINT64_MAX / unit_ns_) * unit_ns_;
}

void PerfettoWriter::packet(const ProtoMessage& packet) {
  ProtoMessage whole = packet;
  whole.put(kSequenceId, kOneSequence);
  if (first_) whole.put(kSequenceFlags, kStateCleared);
  first_ = false;
  ProtoMessage trace;
  trace.put(kPacket, whole.bytes());
  out_.write(trace.bytes());
}

void PerfettoWriter::descriptor(const ProtoMessage& track) {
  packet(ProtoMessage().put(kTrackDescriptor, track.bytes()));
}

void PerfettoWriter::track(uint64_t uuid, std::string_view name, uint64_t parent) {
  ProtoMessage track;
  track.put(kUuid, uuid).put(kName, name);
  if (parent != 0) track.put(kParentUuid, parent);
  descriptor(track);
}

void PerfettoWriter::counter_track(uint64_t uuid, std::string_view name, uint64_t parent) {
  ProtoMessage track;
  track.put(kUuid, uuid).put(kName, name);
  if (parent != 0) track.put(kParentUuid, parent);
  track.put(kCounter, ProtoMessage().put(kUnit, kUnitCount).bytes());
  descriptor(track);
}

void PerfettoWriter::event(Type type, uint64_t track, uint64_t time_us, std::string_view name,
                           const PerfettoArguments& arguments) {
  ProtoMessage event = arguments.event_;
  event.put(kType, static_cast<uint64_t>(type)).put(kTrackUuid, track);
  if (!name.empty()) event.put(kEventName, name);
  ProtoMessage whole;
  whole.put(kTimestamp, time_ns(time_us)).put(kTrackEvent, event.bytes());
  packet(whole);
  ++events_;
}

void PerfettoWriter::begin(uint64_t track, uint64_t time_us, std::string_view name,
                           const PerfettoArguments& arguments) {
  event(Type::begin, track, time_us, name, arguments);
}

void PerfettoWriter::end(uint64_t track, uint64_t time_us, const PerfettoArguments& arguments) {
  event(Type::end, track, time_us, {}, arguments);
}

void PerfettoWriter::instant(uint64_t track, uint64_t time_us, std::string_view name,
                             const PerfettoArguments& arguments) {
  event(Type::instant, track, time_us, name, arguments);
}

void PerfettoWriter::count(uint64_t track, uint64_t time_us, uint64_t value) {
  ProtoMessage event;
  event.put(kType, static_cast<uint64_t>(Type::counter)).put(kTrackUuid, track);
  event.put(kCounterValue, value);
  ProtoMessage whole;
  whole.put(kTimestamp, time_ns(time_us)).put(kTrackEvent, event.bytes());
  packet(whole);
  ++events_;
}

}  // namespace redecode
