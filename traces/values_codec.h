// traces/values_codec.h - plain values to and from their Cap'n Proto structs. Internal to
// traces/*.cpp.
//
// write() throws Error limit above the caps that readers enforce; read() throws corrupt (impossible
// value), limit, or version (an enumerant this program does not know).
#pragma once
#include <string>

#include "traces/capnp_message.h"
#include "traces/event.h"
#include "traces/exchange.h"
#include "traces/finding.h"
#include "traces/header.h"
#include "traces/keyframe.h"
#include "traces/output.h"
#include "traces/row_codec.h"
#include "traces/schema/run.capnp.h"
#include "traces/schema/trace.capnp.h"
#include "traces/step.h"

namespace redecode::codec {

// Totals of a file, as its end record states them.
struct EndTotals {
  uint64_t chunks = 0, records = 0, steps = 0, rows = 0, outputs = 0;
  Digest digest = 0;
  uint64_t gaps = 0, steps_lost = 0, events = 0, exchanges = 0;
  bool operator==(const EndTotals&) const = default;
};

void write(const TraceHeader& value, schema::TraceHeader::Builder out);
void write(const RunHeader& value, schema::RunHeader::Builder out);
void write(const Step& value, RowCodec& rows, schema::Step::Builder out);
void write(const StepOutput& value, schema::StepOutput::Builder out);
void write(const Finding& value, schema::Finding::Builder out);
void write(const EndTotals& value, schema::End::Builder out);
void write(const Departure& value, schema::Departure::Builder out);
void write(const Arrival& value, schema::Arrival::Builder out);
void write(const Keyframe& value, schema::Keyframe::Builder out);
void write(const Event& value, schema::Event::Builder out);
void write(const Gap& value, schema::Gap::Builder out);
void write(const Exchange& value, schema::Exchange::Builder out);
void write(const std::vector<ChunkEntry>& value, schema::FileIndex::Builder out);

void read(schema::TraceHeader::Reader in, TraceHeader& value);
void read(schema::RunHeader::Reader in, RunHeader& value);
void read(schema::Step::Reader in, RowCodec& rows, Step& value);
void read(schema::StepOutput::Reader in, StepOutput& value);
void read(schema::Finding::Reader in, Finding& value);
void read(schema::End::Reader in, EndTotals& value);
void read(schema::Departure::Reader in, Departure& value);
void read(schema::Arrival::Reader in, Arrival& value);
void read(schema::Keyframe::Reader in, Keyframe& value);
void read(schema::Event::Reader in, Event& value);
void read(schema::Gap::Reader in, Gap& value);
void read(schema::Exchange::Reader in, Exchange& value);
void read(schema::FileIndex::Reader in, std::vector<ChunkEntry>& value);

// Shared by the files above and program_codec.cpp.
capnp::Text::Reader text(const std::string& value, uint64_t cap_bytes, const char* what);
std::string take_text(capnp::Text::Reader in, uint64_t cap_bytes, const char* what);
schema::Access to_schema(Access access);
Access from_schema(schema::Access access);
[[noreturn]] void unknown_enumerant(const char* what, unsigned value);

}  // namespace redecode::codec
