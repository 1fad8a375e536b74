#include <array>
#include <cstdio>

#include "cli/demo_story.h"
#include "compare/interval.h"
#include "engine/decoder/defects.h"
#include "traces/json_writer.h"
#include "traces/thousands.h"
#include "traces/wrap.h"

namespace redecode {
namespace {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string percent(double share) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.1f", 100.0 * share);
  return out.data();
}

std::string corrupted_text(const DemoCell& cell) {
  std::string out =
      std::to_string(cell.corrupted_sessions) + " of " + std::to_string(cell.sessions);
  if (cell.corrupted_sessions == 0) return out;
  const RateInterval interval = clopper_pearson(cell.corrupted_sessions, cell.sessions);
  return out + " (" +
         percent(static_cast<double>(cell.corrupted_sessions) /
                 static_cast<double>(cell.sessions)) +
         " %; 95 %: " + percent(interval.lower) + "-" + percent(interval.upper) + " %)";
}

std::string cell_name(const Mode& mode) {
  return std::string(to_text(mode.index_key)) + " + " + std::string(to_text(mode.capture)) + " + " +
         std::string(to_text(mode.streams));
}

std::string matrix_text(const DemoOptions& options, const DemoResult& result) {
  std::string out = "  index keys  capture  streams  digest            corrupted sessions\n";
  std::string corrupt;
  for (const auto& cell : result.cells) {
    out += "  " + padded(std::string(to_text(cell.mode.index_key)), 12) +
           padded(std::string(to_text(cell.mode.capture)), 9) +
           padded(std::string(to_text(cell.mode.streams)), 9) + digest_hex(cell.digest) + "  " +
           corrupted_text(cell) + (cell.same_bits ? ", same bits" : ", bits differ") +
           (cell.mode.order == options.order ? "" : " (up to order " + cell.mode.order + ")") +
           "\n";
    if (!cell.same_bits) corrupt += (corrupt.empty() ? "" : ", ") + cell_name(cell.mode);
  }
  out += corrupt.empty() ? "  No cell differs from its golden.\n"
                         : "  Bits differ only in: " + corrupt + ".\n";
  return out;
}

std::string distance_text(uint32_t distance_ulps) {
  return distance_ulps == UINT32_MAX ? "a number against NaN"
                                     : with_thousands(distance_ulps) + " ULP";
}

std::string element_text(const Divergence& d) {
  std::string out = "first wrong op: ";
  out += d.op ? "`" + d.op->name + "`, layer " + std::to_string(d.op->layer) : "logits";
  if (d.row != kNoRow) out += ", row " + std::to_string(d.row);
  if (d.element && d.expected_bits && d.found_bits) {
    std::array<char, 96> bits{};
    std::snprintf(bits.data(), bits.size(), ", expected 0x%08x, found 0x%08x", *d.expected_bits,
                  *d.found_bits);
    out += ", element " + std::to_string(*d.element) + bits.data() + " (" + d.expected_text +
           " against " + d.found_text + ", " + distance_text(d.distance_ulps) + ")";
  }
  return out;
}

constexpr size_t kLabelColumns = 12;

std::string entry(std::string_view label, const std::string& text) {
  return wrapped_entry(label, kLabelColumns, text);
}

std::string finding_text(const DemoResult& result) {
  if (!result.finding) return entry("4 finding", "none: no cell differs from its golden");
  const DemoFinding& f = *result.finding;
  std::string out = entry("4 finding", sentence(f.finding));
  out += entry("", element_text(f.divergence));
  if (!f.finding.second.op.empty())
    out += entry("", "racing pair: `" + f.finding.first.op + "` and `" + f.finding.second.op +
                         "`; missing edge: " + f.finding.missing_edge);
  out +=
      entry("", "this order fails every time (" + std::to_string(f.failures) + " of " +
                    std::to_string(f.tries) + "; fifo fails " + std::to_string(f.fifo_failures) +
                    " of " + std::to_string(f.tries) + "), " + std::to_string(f.departures_after) +
                    " departure" + (f.departures_after == 1 ? "" : "s") +
                    " from fifo, shrunk from " + std::to_string(f.departures_before) + ":");
  return out + entry("", "--order '" + f.order + "'");
}

void write_cell(JsonWriter& json, const DemoCell& cell) {
  json.begin_object();
  json.key("index_k").value(to_text(cell.mode.index_key));
  json.key("streams").value(to_text(cell.mode.streams));
  json.key("capture").value(to_text(cell.mode.capture));
  json.key("order").value(cell.mode.order);
  json.key("sessions").value(cell.sessions);
  json.key("corrupted_sessions").value(cell.corrupted_sessions);
  json.key("rows_differing").value(cell.rows_differing);
  json.key("digest").value(digest_hex(cell.digest));
  json.key("same_bits").value(cell.same_bits);
  json.end_object();
}

void write_side(JsonWriter& json, const FindingSide& side) {
  json.begin_object();
  json.key("op").value(side.op);
  json.key("buffer").value(side.buffer);
  json.key("layer").value(side.layer);
  json.key("stream").value(side.stream);
  json.key("access").value(to_text(side.access));
  json.key("generation").value(side.generation);
  json.end_object();
}

void write_finding(JsonWriter& json, const DemoFinding& f) {
  json.begin_object();
  json.key("kind").value(to_text(f.finding.kind));
  json.key("step").value(f.finding.step);
  json.key("request").value(f.finding.request);
  json.key("layer").value(f.finding.layer);
  json.key("op").value(f.divergence.op ? f.divergence.op->name : f.finding.first.op);
  json.key("pair").begin_array();
  write_side(json, f.finding.first);
  write_side(json, f.finding.second);
  json.end_array();
  json.key("bytes").value(f.finding.size_bytes);
  json.key("missing_edge").value(f.finding.missing_edge);
  json.key("order").value(f.order);
  json.key("order_tries").value(f.tries);
  json.key("order_failures").value(f.failures);
  json.key("fifo_failures").value(f.fifo_failures);
  json.key("sentence").value(sentence(f.finding));
  json.end_object();
}

}  // namespace

std::string demo_text(const DemoOptions& options, const DemoResult& result) {
  const Defect* defect = find_defect(options.defect);
  std::string out =
      entry("1 record", std::to_string(options.agent.sessions) + " agent sessions x " +
                            std::to_string(options.agent.rounds) + " rounds, " +
                            with_thousands(result.requests) +
                            " requests, arrivals of the Azure 2023 conversation trace (1 step = " +
                            std::to_string(options.ms_per_step) + " ms)");
  out += entry("", with_thousands(result.trace.steps.size()) + " steps, " +
                       with_thousands(result.rows) + " rows, " + with_thousands(result.tokens) +
                       " tokens; trace of " + with_thousands(result.trace_bytes) +
                       " bytes, outputs included");
  std::string goldens;
  for (const auto& g : result.goldens)
    goldens += ", " + std::string(to_text(g.mode.index_key)) + " " + digest_hex(g.digest);
  out += entry("2 golden", "eager, single stream, fifo, at the padded sizes" + goldens);
  out += entry("3 replay", "with the defect " + options.defect + ", order " + options.order + ": " +
                               (defect == nullptr ? "" : std::string(defect->summary)));
  out += "\n" + matrix_text(options, result);
  out += wrapped_entry(" ", 2,
                       "Eager submission is host-paced here: an op runs as soon as it is issued. "
                       "With --order seed:N "
                       "the streams of an eager multi-stream run lag behind the host, and it may "
                       "corrupt there too.");
  out += "\n" + finding_text(result);
  if (result.fixed)
    out += entry("5 fix",
                 "the same cell, the defect mended: " + corrupted_text(*result.fixed) +
                     (result.fixed->same_bits ? ", same bits as the golden" : ", bits differ"));
  return out;
}

std::string demo_json(const DemoOptions& options, const DemoResult& result) {
  JsonWriter json;
  json.begin_object();
  json.key("workload").value(result.workload);
  json.key("defect").value(options.defect);
  json.key("trace").begin_object();
  json.key("steps").value(result.trace.steps.size());
  json.key("rows").value(result.rows);
  json.key("tokens").value(result.tokens);
  json.key("requests").value(result.requests);
  json.key("bytes").value(result.trace_bytes);
  json.key("digest").value(digest_hex(result.trace.digest));
  json.end_object();
  json.key("golden").begin_array();
  for (const auto& g : result.goldens) {
    json.begin_object();
    json.key("index_k").value(to_text(g.mode.index_key));
    json.key("digest").value(digest_hex(g.digest));
    json.end_object();
  }
  json.end_array();
  json.key("matrix").begin_array();
  for (const auto& cell : result.cells) write_cell(json, cell);
  json.end_array();
  json.key("finding");
  if (result.finding)
    write_finding(json, *result.finding);
  else
    json.null();
  json.key("fixed");
  if (result.fixed)
    write_cell(json, *result.fixed);
  else
    json.null();
  json.end_object();
  return json.take();
}

}  // namespace redecode
