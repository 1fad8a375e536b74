#include "traces/edit/recover.h"

#include <algorithm>

#include "traces/edit/same_file.h"
#include "traces/json_writer.h"
#include "traces/thousands.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

class WriteAll final : public RecordTarget {
 public:
  WriteAll(TraceWriter& writer, RecoverResult& result) : writer_(writer), result_(result) {}
  void take(const Step& step) override {
    if (result_.steps++ == 0) first_step_ = step.index;
    writer_.write(step);
    next_step_ = step.index + 1;
  }
  void take(const StepOutput& output) override {
    if (!holds(output.step)) {
      ++result_.outputs_lost;
      return;
    }
    writer_.write(output);
    ++result_.outputs;
  }
  void take(const Event& event) override {
    writer_.write(event);
    ++result_.events;
  }
  void take(const Gap& gap) override {
    writer_.write(gap);
    result_.gaps.push_back(gap);
    result_.steps_lost += gap.count;
    next_step_ = gap.last + 1;
  }
  StepIndex next_step() const { return next_step_; }

 private:
  // An output is of no use without its step.
  bool holds(StepIndex step) const {
    if (result_.steps == 0 || step < first_step_ || step >= next_step_) return false;
    return std::none_of(result_.gaps.begin(), result_.gaps.end(),
                        [&](const Gap& gap) { return step >= gap.first && step <= gap.last; });
  }

  StepIndex first_step_ = 0;
  TraceWriter& writer_;
  RecoverResult& result_;
  StepIndex next_step_ = 0;
};

// Where a trace was taken apart before (a set's first files deleted), it does not start empty.
void restore_start(const TraceReader& reader, TraceWriter& writer, bool& done) {
  if (done) return;
  done = true;
  writer.restore(reader.start());
}

}  // namespace

RecoverResult recover(const std::filesystem::path& from, const std::filesystem::path& to,
                      bool overwrite, const MoreRecords& more) {
  refuse_same_file(from, to);
  TraceReader reader(from, {.salvage = true});
  TraceHeader header = reader.header();
  header.place = SetPlace();
  RecoverResult result;
  TraceWriter writer(to, header, {.layout = StepLayout::columns}, overwrite);
  WriteAll target(writer, result);
  TraceRecord record;
  bool restored = false;
  while (reader.next(record)) {
    restore_start(reader, writer, restored);
    if (record.step) target.take(*record.step);
    if (record.output) target.take(*record.output);
    if (record.event) target.take(*record.event);
    if (record.gap) target.take(*record.gap);
    if (record.exchange) {
      writer.write(*record.exchange);
      ++result.exchanges;
    }
  }
  result.damage = reader.damage();
  result.end = reader.summary().end;
  result.cut_offset_bytes = reader.summary().cut_offset_bytes;
  const uint64_t before = result.steps;
  if (more) more(target.next_step(), target);
  result.steps_from_rings = result.steps - before;
  writer.close();
  return result;
}

std::string to_text(const RecoverResult& r, const std::string& from, const std::string& to) {
  std::string out = "recovered " + to + ": " + with_thousands(r.steps);
  if (r.steps_lost != 0) out += " of " + with_thousands(r.steps + r.steps_lost);
  out += r.steps == 1 ? " step" : " steps";
  out += ", " + with_thousands(r.outputs) + " outputs";
  if (r.exchanges != 0) out += ", " + with_thousands(r.exchanges) + " exchanges";
  out += '\n';
  if (r.steps_from_rings != 0)
    out += "  " + with_thousands(r.steps_from_rings) +
           " steps came from the rings that the recorder left behind\n";
  if (r.end == FileEnd::cut)
    out += "  " + from + " was not closed; it ends at byte " + with_thousands(r.cut_offset_bytes) +
           "\n";
  if (r.outputs_lost != 0)
    out += "  " + with_thousands(r.outputs_lost) + " outputs left out: their steps are missing\n";
  for (const std::string& damage : r.damage) out += "  damaged: " + damage + '\n';
  for (const Gap& gap : r.gaps) out += "  " + to_text(gap) + '\n';
  return out;
}

std::string to_json(const RecoverResult& r, const std::string& from, const std::string& to) {
  JsonWriter json;
  json.begin_object().member("from", from).member("to", to).member("steps", r.steps);
  json.member("steps_lost", r.steps_lost).member("steps_from_rings", r.steps_from_rings);
  json.member("outputs", r.outputs)
      .member("outputs_lost", r.outputs_lost)
      .member("events", r.events);
  json.member("exchanges", r.exchanges).member("was_closed", r.end == FileEnd::clean);
  json.key("damage").begin_array();
  for (const std::string& damage : r.damage) json.value(damage);
  json.end_array().key("gaps").begin_array();
  for (const Gap& gap : r.gaps) write_json(gap, json);
  json.end_array().end_object();
  return json.take();
}

}  // namespace redecode
