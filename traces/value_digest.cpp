#include "traces/value_digest.h"

#include "traces/run_file.h"
#include "traces/trace_file.h"

namespace redecode {
namespace {

void add(ValueDigest& d, const Arrival& a) {
  d.add(a.request);
  d.add(a.session);
  d.add(a.round);
  d.add(a.prompt_tokens);
  d.add(a.cached_tokens);
  d.add(a.max_tokens);
  d.add(a.resumed);
  d.add(a.sampling.temperature);
  d.add(a.sampling.top_k);
  d.add(a.sampling.top_p);
  d.add(a.sampling.min_p);
  d.add(a.sampling.seed);
}

}  // namespace

Digest digest_step(const Step& step) {
  ValueDigest d;
  return digest_step(step, d);
}

Digest digest_step(const Step& step, ValueDigest& d) {
  d.reserve(16 + step.departures.size() * 2 + step.arrivals.size() * 12 +
            step.page_changes.size() * 4 + step.rows.size() * 5);
  d.add(step.index);
  d.add(static_cast<uint8_t>(step.phase));
  d.add(step.bucket);
  d.add(step.departures.size());
  for (const Departure& departure : step.departures) {
    d.add(departure.request);
    d.add(static_cast<uint8_t>(departure.reason));
  }
  d.add(step.arrivals.size());
  for (const Arrival& arrival : step.arrivals) add(d, arrival);
  d.add(step.page_changes.size());
  for (const PageChange& change : step.page_changes) {
    d.add(change.request);
    d.add(change.index);
    d.add(change.page);
    d.add(change.shared);
  }
  d.add(step.rows.size());
  uint64_t* to = d.extend(step.rows.size() * 5).data();
  for (const Row& row : step.rows) {
    *to++ = row.request;
    *to++ = row.position;
    *to++ = static_cast<uint64_t>(row.token);  // sign-extended, as add() does
    *to++ = row.slot;
    *to++ = row.wants_output ? 1 : 0;
  }
  return d.finish();
}

Digest digest_output(const StepOutput& output) {
  ValueDigest d;
  d.add(output.step);
  d.add(output.rows.size());
  for (const RowOutput& row : output.rows) {
    d.add(row.row);
    d.add(row.request);
    d.add(row.position);
    d.add(row.token);
    d.add(row.logits_digest);
    d.add(row.log_sum_exp);
    d.add(row.top.size());
    for (const TopLogit& top : row.top) {
      d.add(top.token);
      d.add(top.logit);
    }
  }
  return d.finish();
}

}  // namespace redecode
