#include "traces/edit/redact.h"

#include "traces/edit/same_file.h"

namespace redecode {
namespace {

constexpr size_t kMostNamed = 100;

void take_out(Step& step, RedactResult& result) {
  result.tokens += step.rows.size();
  for (Row& row : step.rows) row.token = 0;
}

void take_out(StepOutput& output) {
  for (RowOutput& row : output.rows)
    row = RowOutput{.row = row.row,
                    .request = row.request,
                    .position = row.position,
                    .token = 0,
                    .logits_digest = 0,
                    .log_sum_exp = 0.0f,
                    .top = {},
                    .logits = {}};
  for (OpProbe& probe : output.ops) {
    probe.digest = 0;
    probe.row_digests.clear();
    probe.values.clear();
  }
}

void take_out(std::string& text, RedactResult& result) {
  result.text_bytes += text.size();
  text.clear();
}

void take_out(Exchange& e, RedactResult& result) {
  take_out(e.prompt, result);
  for (std::string& stop : e.stop) take_out(stop, result);
  e.stop.clear();
  e.block_hashes.clear();
  for (ExchangeChoice& choice : e.choices) take_out(choice.text, result);
}

// Sentences about what is left, up to a number.
class Left {
 public:
  explicit Left(RedactionProof& proof) : proof_(proof) {}
  void look(bool is_clean, const std::string& where) {
    ++proof_.values;
    if (!is_clean && proof_.left.size() < kMostNamed) proof_.left.push_back(where);
  }

 private:
  RedactionProof& proof_;
};

void look_at(const Step& step, Left& left) {
  for (const Row& row : step.rows)
    left.look(row.token == 0, "step " + std::to_string(step.index) + ", request " +
                                  std::to_string(row.request) + ": an input token");
}

void look_at(const StepOutput& output, Left& left) {
  const std::string where = "output of step " + std::to_string(output.step);
  for (const RowOutput& row : output.rows) {
    left.look(row.token == 0, where + ": a sampled token");
    left.look(row.top.empty() && row.logits.empty(), where + ": logits");
    left.look(row.logits_digest == 0 && row.log_sum_exp == 0.0f, where + ": a digest of logits");
  }
  for (const OpProbe& probe : output.ops)
    left.look(probe.digest == 0 && probe.row_digests.empty() && probe.values.empty(),
              where + ": probed values");
}

void look_at(const Exchange& e, Left& left) {
  const std::string where = "exchange " + std::to_string(e.number);
  left.look(e.prompt.empty(), where + ": its prompt");
  left.look(e.stop.empty(), where + ": its stop strings");
  left.look(e.block_hashes.empty(), where + ": hashes of its prompt");
  for (const ExchangeChoice& choice : e.choices)
    left.look(choice.text.empty(), where + ": its answer");
}

}  // namespace

RedactResult redact(const std::filesystem::path& from, const std::filesystem::path& to,
                    bool overwrite) {
  refuse_same_file(from, to);
  TraceReader reader(from);
  TraceHeader header = reader.header();
  header.place = SetPlace();
  header.redaction = Redaction::lengths;
  header.workload.clear();
  header.environment.clear();
  RedactResult result;
  TraceWriter writer(to, header, {.layout = StepLayout::columns}, overwrite);
  TraceRecord record;
  bool restored = false;
  while (reader.next(record)) {
    if (!restored) writer.restore(reader.start());
    restored = true;
    if (record.step) {
      take_out(*record.step, result);
      writer.write(*record.step);
      ++result.steps;
    } else if (record.output) {
      take_out(*record.output);
      writer.write(*record.output);
      ++result.outputs;
    } else if (record.event) {
      take_out(record.event->text, result);
      writer.write(*record.event);
      ++result.events;
    } else if (record.exchange) {
      take_out(*record.exchange, result);
      writer.write(*record.exchange);
      ++result.exchanges;
    } else if (record.gap) {
      writer.write(*record.gap);
    }
  }
  writer.close();
  return result;
}

RedactionProof prove_redacted(const std::filesystem::path& path) {
  RedactionProof proof;
  Left left(proof);
  TraceReader reader(path);
  left.look(reader.header().workload.empty(), "header: the workload");
  left.look(reader.header().environment.empty(), "header: the environment");
  TraceRecord record;
  while (reader.next(record)) {
    if (record.step) look_at(*record.step, left);
    if (record.output) look_at(*record.output, left);
    if (record.exchange) look_at(*record.exchange, left);
    if (record.event)
      left.look(record.event->text.empty(),
                "event before step " + std::to_string(record.event->before_step) + ": its text");
  }
  proof.chunks = reader.summary().chunks;
  return proof;
}

}  // namespace redecode
