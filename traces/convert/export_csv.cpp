#include "traces/convert/export_csv.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <string>

#include "traces/convert/record_stream.h"
#include "traces/convert/request_book.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

// One line, cell by cell.
class CsvLine {
 public:
  CsvLine& add(std::string_view text) {
    separate();
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
      line_ += text;
      return *this;
    }
    line_ += '"';
    for (const char c : text) line_.append(c == '"' ? 2 : 1, c);
    line_ += '"';
    return *this;
  }
  template <std::integral I>
  CsvLine& add(I number) {
    return add(std::string_view(std::to_string(number)));
  }
  CsvLine& add(float number) {
    char digits[64];
    const auto written = std::to_chars(digits, digits + sizeof digits, number);
    return add(std::string_view(digits, static_cast<size_t>(written.ptr - digits)));
  }
  // Empty for 0: not known.
  CsvLine& add_known(uint64_t number) { return number == 0 ? add("") : add(number); }
  template <class T>
  CsvLine& add(const std::optional<T>& number) {
    return number ? add(*number) : add("");
  }

  void end(ByteSink& out) {
    line_ += '\n';
    out.write(line_);
    line_.clear();
    first_ = true;
  }

 private:
  void separate() {
    if (!first_) line_ += ',';
    first_ = false;
  }
  std::string line_;
  bool first_ = true;
};

std::string_view columns_of(CsvTable table) {
  switch (table) {
    case CsvTable::steps:
      return "step,time_us,phase,bucket,rows,rows_left_out,padded_rows,requests,outputs,"
             "departures,arrivals,page_changes,seq_len_max,seq_len_sum\n";
    case CsvTable::requests:
      return "request,session,round,prompt_tokens,cached_tokens,max_tokens,arrival_step,"
             "arrival_us,first_output_step,first_output_us,last_step,last_us,rows,output_tokens,"
             "preemptions,end\n";
    case CsvTable::rows:
      return "step,row,request,position,token,slot,wants_output\n";
    case CsvTable::exchanges:
      return "exchange,session,round,path,model,status,end,streamed,start_us,first_us,end_us,"
             "prompt_bytes,prompt_tokens,output_tokens,max_tokens,n,temperature,top_p,seed,"
             "text_bytes,finish_reason,events,blocks\n";
  }
  return "";
}

class Table {
 public:
  Table(CsvTable table, ByteSink& out) : table_(table), out_(out) { out_.write(columns_of(table)); }

  void add(const Step& step, const TraceReader& reader) {
    if (table_ == CsvTable::steps) add_step(step);
    if (table_ == CsvTable::rows) add_rows(step);
    if (table_ != CsvTable::requests) return;
    if (!started_) book_.start(reader.start());
    started_ = true;
    ended_.clear();
    book_.add(step, ended_);
    for (const RequestRecord& record : ended_) add_request(record);
  }

  void add(const Exchange& e) {
    if (table_ != CsvTable::exchanges) return;
    uint64_t text_bytes = 0;
    for (const ExchangeChoice& choice : e.choices) text_bytes += choice.text_bytes;
    line_.add(e.number).add(e.session).add(e.round).add(e.path).add(e.model);
    line_.add_known(e.status).add(to_text(e.end)).add(e.streamed ? 1 : 0).add(e.start_us);
    line_.add_known(e.first_us).add_known(e.end_us).add(e.prompt_bytes);
    line_.add_known(e.prompt_tokens).add_known(e.output_tokens).add_known(e.max_tokens);
    line_.add(e.choice_count).add(e.sampling.temperature).add(e.sampling.top_p);
    if (e.has_seed)
      line_.add(e.sampling.seed);
    else
      line_.add("");
    line_.add(text_bytes).add(e.choices.empty() ? "" : e.choices.front().finish_reason);
    line_.add(e.chunk_us.size()).add(e.block_hashes.size());
    end_line();
  }

  void finish() {
    for (const RequestRecord& record : book_.rest()) add_request(record);
  }
  uint64_t lines() const { return lines_; }

 private:
  void add_step(const Step& step) {
    uint64_t requests = 0, outputs = 0, longest = 0, sum = 0;
    for (size_t i = 0; i < step.rows.size(); ++i) {
      outputs += step.rows[i].wants_output ? 1 : 0;
      if (i + 1 < step.rows.size() && step.rows[i + 1].request == step.rows[i].request) continue;
      const uint64_t length = uint64_t{step.rows[i].position} + 1;
      ++requests;
      longest = std::max(longest, length);
      sum += length;
    }
    line_.add(step.index).add_known(step.time_us).add(to_text(step.phase)).add(step.bucket);
    line_.add(step.rows.size()).add(step.rows_left_out).add(step.padded_rows()).add(requests);
    line_.add(outputs).add(step.departures.size()).add(step.arrivals.size());
    line_.add(step.page_changes.size()).add(longest).add(sum);
    end_line();
  }

  void add_rows(const Step& step) {
    for (size_t i = 0; i < step.rows.size(); ++i) {
      const Row& row = step.rows[i];
      line_.add(step.index).add(i).add(row.request).add(row.position).add(row.token);
      line_.add(row.slot).add(row.wants_output ? 1 : 0);
      end_line();
    }
  }

  void add_request(const RequestRecord& r) {
    line_.add(r.arrival.request);
    if (r.known) {
      line_.add(r.arrival.session).add(r.arrival.round).add(r.arrival.prompt_tokens);
      line_.add(r.arrival.cached_tokens).add(r.arrival.max_tokens);
    } else {
      for (int i = 0; i < 5; ++i) line_.add("");
    }
    line_.add(r.arrival_step).add_known(r.arrival_us);
    line_.add(r.first_output_step).add_known(r.first_output_us);
    line_.add(r.last_step).add_known(r.last_us).add(r.rows).add(r.output_tokens);
    line_.add(r.preemptions).add(r.end ? to_text(*r.end) : std::string_view("running"));
    end_line();
  }

  void end_line() {
    line_.end(out_);
    ++lines_;
  }

  CsvTable table_;
  ByteSink& out_;
  CsvLine line_;
  RequestBook book_;
  std::vector<RequestRecord> ended_;
  bool started_ = false;
  uint64_t lines_ = 0;
};

}  // namespace

std::string_view to_text(CsvTable table) {
  switch (table) {
    case CsvTable::steps:
      return "steps";
    case CsvTable::requests:
      return "requests";
    case CsvTable::rows:
      return "rows";
    case CsvTable::exchanges:
      return "exchanges";
  }
  return "?";
}

bool from_text(std::string_view text, CsvTable& out) {
  for (const auto table :
       {CsvTable::steps, CsvTable::requests, CsvTable::rows, CsvTable::exchanges}) {
    if (text != to_text(table)) continue;
    out = table;
    return true;
  }
  return false;
}

ExportResult export_csv(const std::filesystem::path& path, CsvTable table, ByteSink& out) {
  RecordStream stream = trace_stream(path, "its outputs can be exported as jsonl, npy or npz");
  Table lines(table, out);
  AnyRecord record;
  while (stream.next(record)) {
    if (record.step) lines.add(*record.step, *stream.trace());
    if (record.exchange) lines.add(*record.exchange);
  }
  lines.finish();
  return {.items = lines.lines(),
          .unit = std::string(to_text(table)),
          .end = stream.summary().end,
          .notices = {}};
}

}  // namespace redecode
