// tests/compare/make.h - small runs to compare: values that tests then change at one place.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compare/run_source.h"
#include "traces/digest.h"
#include "traces/trace_file.h"

namespace redecode::test {

inline void refresh_digest(RowOutput& row) {
  row.logits_digest = digest_span(std::span<const float>(row.logits));
}

// A row with full logits [8], distinct for every (request, position).
inline RowOutput make_row(uint32_t row, RequestId request, uint32_t position, bool full = true) {
  RowOutput out;
  out.row = row;
  out.request = request;
  out.position = position;
  for (uint32_t i = 0; i < 8; ++i)
    out.logits.push_back(static_cast<float>(request * 100 + position) +
                         0.125f * static_cast<float>(i));
  out.token = 7;
  out.log_sum_exp = out.logits[7] + 1.0f;
  for (int32_t token = 7; token >= 5; --token)
    out.top.push_back({token, out.logits[static_cast<size_t>(token)]});
  refresh_digest(out);
  if (!full) out.logits.clear();
  return out;
}

// An op that wrote f32 values [rows, 2].
inline OpProbe make_op(std::string name, uint32_t layer, uint32_t command, uint32_t stream,
                       std::vector<float> values) {
  OpProbe out;
  out.command = command;
  out.layer = layer;
  out.stream = stream;
  out.op = std::move(name);
  out.element_size_bytes = 4;
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  out.values.assign(bytes, bytes + values.size() * sizeof(float));
  out.digest = digest_bytes(bytes, out.values.size());
  for (size_t i = 0; i + 1 < values.size(); i += 2)
    out.row_digests.push_back(digest_bytes(values.data() + i, 2 * sizeof(float)));
  return out;
}

// Two rows a step, requests 4 and 5 at position = step.
inline StepOutput make_step(StepIndex step, bool full = true) {
  StepOutput out;
  out.step = step;
  out.rows = {make_row(0, 4, static_cast<uint32_t>(step), full),
              make_row(1, 5, static_cast<uint32_t>(step), full)};
  return out;
}

inline RunHeader make_header() {
  RunHeader out;
  out.writer = "redecode 0.1.0";
  out.model.family = "dsv4";
  out.model.spec = "dsv4-small:seed=1";
  out.model.config_digest = 11;
  out.model.weights_digest = 12;
  out.model.vocab = 8;
  out.model.layers = 2;
  out.trace_digest = 13;
  return out;
}

inline MemoryRun make_run(StepIndex steps, bool full = true) {
  MemoryRun out;
  out.header = make_header();
  for (StepIndex step = 0; step < steps; ++step) out.outputs.push_back(make_step(step, full));
  return out;
}

inline Finding make_finding(FindingKind kind, StepIndex step, std::string first_op,
                            std::string second_op, uint32_t layer = 1) {
  Finding out;
  out.kind = kind;
  out.step = step;
  out.layer = layer;
  out.first = {std::move(first_op), "index_q", layer, 3, 40, step, Access::read, 7};
  out.second = {std::move(second_op), "q_rope", layer, 0, 41, step, Access::write, 8};
  out.size_bytes = 196608;
  return out;
}

// Sessions 0 and 1 with two rounds each: requests 4, 6 and 5, 7.
inline Trace make_trace() {
  Trace out;
  out.digest = 13;
  Step step;
  const auto arrival = [](RequestId request, SessionId session, uint32_t round) {
    Arrival a;
    a.request = request;
    a.session = session;
    a.round = round;
    return a;
  };
  step.arrivals = {arrival(4, 0, 0), arrival(5, 1, 0)};
  for (RequestId request = 4; request <= 5; ++request) {
    Row row;
    row.request = request;
    row.wants_output = true;
    step.rows.push_back(row);
  }
  out.steps.push_back(step);
  step.index = 1;
  step.arrivals = {arrival(6, 0, 1), arrival(7, 1, 1)};
  for (Row& row : step.rows) row.position = 1;
  out.steps.push_back(step);
  return out;
}

}  // namespace redecode::test
