#include <cmath>
#include <cstdio>
#include <string_view>

#include "traces/convert/stats.h"
#include "traces/thousands.h"
#include "traces/value_text.h"

namespace redecode {
namespace {

constexpr size_t kLabelColumns = 22;

std::string line(std::string_view label, const std::string& value) {
  std::string out(label);
  out.append(label.size() < kLabelColumns ? kLabelColumns - label.size() : 1, ' ');
  return out + value + '\n';
}

std::string tenths(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", std::isfinite(value) ? value : 0.0);
  return text;
}

std::string share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "0.0%";
  return tenths(100.0 * static_cast<double>(part) / static_cast<double>(whole)) + "%";
}

double per(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string padded(const std::string& text, size_t columns) {
  return text.size() >= columns ? text : std::string(columns - text.size(), ' ') + text;
}

constexpr size_t kNumberColumns = 11;

std::string heading() {
  std::string out(kLabelColumns, ' ');
  for (const char* name : {"min", "p50", "p90", "p99", "max"}) out += padded(name, kNumberColumns);
  return out + '\n';
}

std::string row(std::string_view label, const Distribution& d, std::string_view unit) {
  if (d.count() == 0) return {};
  std::string value;
  for (const uint64_t number :
       {d.min(), d.percentile(50), d.percentile(90), d.percentile(99), d.max()})
    value += padded(with_thousands(number), kNumberColumns);
  return line(label, value + ' ' + std::string(unit));
}

std::string counts_text(const RateOverTime& rate) {
  std::string out;
  for (const uint64_t count : rate.counts())
    out += (out.empty() ? "" : " ") + std::to_string(count);
  return out;
}

std::string rate_lines(const RateOverTime& rate) {
  if (rate.count() == 0) return {};
  std::string out;
  if (rate.last() > rate.first())
    out += line("arrivals a second", tenths(static_cast<double>(rate.count() - 1) * 1e6 /
                                            static_cast<double>(rate.last() - rate.first())));
  return out + line("arrivals over time",
                    "each " + with_thousands(rate.length() / 1000) + " ms: " + counts_text(rate));
}

std::string steps_text(const TraceStats& stats) {
  const StepStats& s = stats.steps;
  if (!s.first) return {};
  std::string out = line("steps", with_thousands(stats.summary.steps) + ", " +
                                      std::to_string(*s.first) + ".." + std::to_string(*s.last));
  for (size_t i = 0; i < s.phases.size(); ++i)
    if (s.phases[i].steps != 0)
      out += line("  " + std::string(to_text(static_cast<Phase>(i))),
                  with_thousands(s.phases[i].steps) + " steps, " +
                      with_thousands(s.phases[i].rows) + " rows");
  if (s.rows_left_out != 0) out += line("rows left out", with_thousands(s.rows_left_out));
  out += line("tokens sampled", with_thousands(s.sampled_tokens));
  out += line("padding rows", with_thousands(s.padding_rows) + ", " +
                                  share(s.padding_rows, s.padding_rows + s.rows));
  std::string buckets;
  for (const auto& [bucket, steps] : s.buckets)
    buckets += (buckets.empty() ? "" : ", ") +
               (bucket == 0 ? std::string("none") : std::to_string(bucket)) + ": " +
               with_thousands(steps);
  out += line("steps by bucket", buckets);
  out += line("page changes", with_thousands(s.page_changes) + ", " +
                                  with_thousands(s.shared_pages) + " of shared pages");
  out += heading() + row("batch size", s.batch_rows, "rows") +
         row("  decode", s.decode_rows, "rows") +
         row("sequence length", s.sequence_tokens, "tokens") +
         row("between steps", s.between_us, "us");
  if (s.times_known == 0) out += line("between steps", "not known: no step says its time");
  if (s.times_backwards != 0)
    out += line("clock went backwards", with_thousands(s.times_backwards) + " times");
  return out;
}

std::string requests_text(const TraceStats& stats) {
  const RequestStats& s = stats.requests;
  if (!stats.steps.first) return {};
  std::string out =
      line("requests", with_thousands(s.arrivals) + " in " + with_thousands(s.sessions) +
                           " sessions, " + tenths(per(s.arrivals, s.sessions)) + " rounds each, " +
                           with_thousands(s.rounds_max) + " at most");
  std::string ends;
  for (size_t i = 0; i < s.departures.size(); ++i)
    if (s.departures[i] != 0)
      ends += (ends.empty() ? "" : ", ") + with_thousands(s.departures[i]) + ' ' +
              std::string(to_text(static_cast<DepartureReason>(i)));
  out += line("  left", ends.empty() ? "none" : ends);
  out += line("preemptions",
              with_thousands(s.departures[static_cast<size_t>(DepartureReason::preempted)]) + ", " +
                  with_thousands(s.resumed) + " resumed, " + with_thousands(s.recomputed_tokens) +
                  " tokens computed again");
  out += line("prompt tokens", with_thousands(s.prompt_tokens_sum) + ", " +
                                   share(s.cached_tokens_sum, s.prompt_tokens_sum) +
                                   " of them from the prefix cache");
  out += heading() + row("prompt", s.prompt_tokens, "tokens") +
         row("asked for", s.asked_tokens, "tokens");
  if (s.by_time.count() != 0) return out + rate_lines(s.by_time);
  if (s.by_step.count() != 0)
    out += line("arrivals by step",
                "each " + with_thousands(s.by_step.length()) + " steps: " + counts_text(s.by_step));
  return out;
}

std::string exchanges_text(const ExchangeStats& s) {
  if (s.count == 0) return {};
  std::string out =
      line("exchanges", with_thousands(s.count) + ", " + with_thousands(s.streamed) +
                            " streamed, in " + with_thousands(s.sessions) + " sessions");
  std::string statuses, ends;
  for (const auto& [status, count] : s.statuses)
    statuses += (statuses.empty() ? "" : ", ") + with_thousands(count) + " with " +
                (status == 0 ? std::string("none") : std::to_string(status));
  for (size_t i = 0; i < s.ends.size(); ++i)
    if (s.ends[i] != 0)
      ends += (ends.empty() ? "" : ", ") + with_thousands(s.ends[i]) + ' ' +
              std::string(to_text(static_cast<ExchangeEnd>(i)));
  out += line("  status", statuses) + line("  ends", ends);
  out += line("  tokens", with_thousands(s.prompt_tokens) + " of prompts, " +
                              with_thousands(s.output_tokens) + " of answers");
  out += line("  text", with_thousands(s.prompt_bytes) + " bytes of prompts, " +
                            with_thousands(s.text_bytes) + " bytes of answers");
  out += heading() + row("prompt", s.prompt_lengths, "tokens") +
         row("answer", s.output_lengths, "tokens") + row("to the first byte", s.first_us, "us") +
         row("between events", s.between_us, "us") + row("to the last byte", s.whole_us, "us");
  return out + rate_lines(s.by_time);
}

std::string bytes_text(const TraceStats& stats) {
  const FileSummary& f = stats.summary;
  std::string out = line("file", with_thousands(f.file_bytes) + " bytes, " +
                                     with_thousands(f.payload_bytes) + " uncompressed");
  const bool of_steps = f.steps != 0;
  const uint64_t units = of_steps ? f.steps : f.exchanges;
  const char* unit = of_steps ? " a step" : " an exchange";
  if (units != 0) out += line("  stored", tenths(per(f.file_bytes, units)) + " bytes" + unit);
  for (const KindStats& kind : stats.kinds) {
    std::string value =
        with_thousands(kind.bytes) + " bytes in " + with_thousands(kind.records) + " records";
    if (units != 0) value += ", " + tenths(per(kind.bytes, units)) + unit;
    out += line("  " + kind.kind, value);
  }
  return out;
}

}  // namespace

std::string to_text(const TraceStats& stats) {
  std::string out = line("trace", stats.path);
  if (!stats.header.workload.empty()) out += line("workload", stats.header.workload);
  if (stats.summary.end == FileEnd::cut)
    out += line("cut", "at byte " + with_thousands(stats.summary.cut_offset_bytes) +
                           "; all below is of what could be read");
  out += steps_text(stats) + requests_text(stats) + exchanges_text(stats.exchanges);
  for (const auto& [causes, gap] : stats.gaps)
    out += line("gaps", with_thousands(gap.gaps) + " of " + with_thousands(gap.steps) +
                            " steps: " + gap_causes_text(causes));
  for (const auto& [kind, count] : stats.events)
    out += line("events", with_thousands(count) + ' ' + std::string(to_text(kind)));
  return out + bytes_text(stats);
}

}  // namespace redecode
