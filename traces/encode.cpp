#include "traces/check.h"
#include "traces/values_codec.h"

namespace redecode::codec {
namespace {

template <class ListBuilder, class Values>
void set_all(ListBuilder list, const Values& values) {
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, values[i]);
}

unsigned count(size_t size, uint64_t cap, const char* what) {
  limits::check(size, cap, what);
  return static_cast<unsigned>(size);
}

capnp::Text::Reader name(const std::string& value) {
  return text(value, limits::kNameBytes, "bytes of a name");
}

capnp::Text::Reader long_text(const std::string& value) {
  return text(value, limits::kTextBytes, "bytes of a text");
}

template <class E>
capnp::Text::Reader word(E value) {
  const std::string_view view = to_text(value);  // a literal, so terminated by zero
  return {view.data(), view.size()};
}

void write_texts(const std::vector<std::string>& values, capnp::List<capnp::Text>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, name(values[i]));
}

void write(const ModelIdentity& value, schema::ModelIdentity::Builder out) {
  out.setFamily(name(value.family));
  out.setSpec(name(value.spec));
  out.setConfigDigest(value.config_digest);
  out.setWeightsDigest(value.weights_digest);
  out.setVocab(value.vocab);
  out.setLayers(value.layers);
  if (!value.weights_sha256.empty()) out.setWeightsSha256(name(value.weights_sha256));
  if (!value.tokenizer_sha256.empty()) out.setTokenizerSha256(name(value.tokenizer_sha256));
  if (!value.config_sha256.empty()) out.setConfigSha256(name(value.config_sha256));
}

void write(const EngineSettings& value, schema::EngineSettings::Builder out) {
  out.setPageSize(value.page_size);
  out.setPageCount(value.page_count);
  out.setMaxBatchRows(value.max_batch_rows);
  out.setMaxSeqLen(value.max_seq_len);
  set_all(out.initBuckets(count(value.buckets.size(), limits::kBuckets, "buckets")), value.buckets);
}

void write(const Mode& value, schema::Mode::Builder out) {
  out.setStreams(word(value.streams));
  out.setCapture(word(value.capture));
  out.setBackend(word(value.backend));
  out.setIndexKey(word(value.index_key));
  out.setTopk(word(value.topk));
  out.setKernels(word(value.kernels));
  out.setFeedback(word(value.feedback));
  out.setProbe(word(value.probe));
  out.setOrder(long_text(value.order));
  write_texts(value.inject,
              out.initInject(count(value.inject.size(), limits::kListedTexts, "defect names")));
  out.setPoison(value.poison);
  out.setFullLogits(value.full_logits);
}

// What the headers of traces and runs have in common.
template <class Header, class Builder>
void write_common(const Header& value, Builder out) {
  out.setWriter(name(value.writer));
  write(value.model, out.initModel());
  write(value.engine, out.initEngine());
  write(value.mode, out.initMode());
  write_texts(value.environment,
              out.initEnvironment(
                  count(value.environment.size(), limits::kListedTexts, "environment settings")));
}

schema::Phase to_schema(Phase phase) {
  switch (phase) {
    case Phase::prefill:
      return schema::Phase::PREFILL;
    case Phase::decode:
      return schema::Phase::DECODE;
    case Phase::mixed:
      return schema::Phase::MIXED;
  }
  unknown_enumerant("phase", static_cast<unsigned>(phase));
}

schema::DepartureReason to_schema(DepartureReason reason) {
  switch (reason) {
    case DepartureReason::finished:
      return schema::DepartureReason::FINISHED;
    case DepartureReason::preempted:
      return schema::DepartureReason::PREEMPTED;
    case DepartureReason::cancelled:
      return schema::DepartureReason::CANCELLED;
    case DepartureReason::failed:
      return schema::DepartureReason::FAILED;
  }
  unknown_enumerant("departure reason", static_cast<unsigned>(reason));
}

schema::FindingKind to_schema(FindingKind kind) {
  switch (kind) {
    case FindingKind::race:
      return schema::FindingKind::RACE;
    case FindingKind::use_after_free:
      return schema::FindingKind::USE_AFTER_FREE;
    case FindingKind::unwritten:
      return schema::FindingKind::UNWRITTEN;
    case FindingKind::stale:
      return schema::FindingKind::STALE;
    case FindingKind::foreign:
      return schema::FindingKind::FOREIGN;
    case FindingKind::frozen:
      return schema::FindingKind::FROZEN;
    case FindingKind::numeric:
      return schema::FindingKind::NUMERIC;
    case FindingKind::hang:
      return schema::FindingKind::HANG;
  }
  unknown_enumerant("finding kind", static_cast<unsigned>(kind));
}

void write_arrival(const Arrival& a, schema::Arrival::Builder out) {
  out.setRequest(a.request);
  out.setSession(a.session);
  out.setRound(a.round);
  out.setPromptTokens(a.prompt_tokens);
  out.setCachedTokens(a.cached_tokens);
  out.setMaxTokens(a.max_tokens);
  out.setResumed(a.resumed);
  out.setTemperature(a.sampling.temperature);
  out.setTopK(a.sampling.top_k);
  out.setTopP(a.sampling.top_p);
  out.setMinP(a.sampling.min_p);
  out.setSeed(a.sampling.seed);
}

// More than 16 bits, and no more than 24: then three bytes a token are the smallest.
bool fits_three_bytes(const RowColumns& c) {
  if (c.tokens_high.empty()) return false;
  for (const uint16_t high : c.tokens_high)
    if (high > 0xff) return false;
  return true;
}

void write_columns(const RowColumns& c, schema::Step::Builder out) {
  out.setRowCount(c.row_count);
  const auto size = [](const auto& column) { return static_cast<unsigned>(column.size()); };
  if (!c.requests.empty()) set_all(out.initRequests(size(c.requests)), c.requests);
  if (!c.positions.empty()) set_all(out.initPositions(size(c.positions)), c.positions);
  if (fits_three_bytes(c)) {
    auto packed = out.initPackedTokens(size(c.tokens) * 3);
    for (size_t i = 0; i < c.tokens.size(); ++i) {
      packed[3 * i] = static_cast<uint8_t>(c.tokens[i]);
      packed[3 * i + 1] = static_cast<uint8_t>(c.tokens[i] >> 8);
      packed[3 * i + 2] = static_cast<uint8_t>(c.tokens_high[i]);
    }
  } else {
    if (!c.tokens.empty()) set_all(out.initTokens(size(c.tokens)), c.tokens);
    if (!c.tokens_high.empty()) set_all(out.initTokensHigh(size(c.tokens_high)), c.tokens_high);
  }
  if (!c.slots.empty()) set_all(out.initSlots(size(c.slots)), c.slots);
  if (!c.wants_output.empty()) {
    auto list = out.initWantsOutput(size(c.wants_output));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, c.wants_output[i] != 0);
  }
}

void write(const RowOutput& row, schema::RowOutput::Builder out) {
  out.setRow(row.row);
  out.setRequest(row.request);
  out.setPosition(row.position);
  out.setToken(row.token);
  out.setLogitsDigest(row.logits_digest);
  out.setLogSumExp(row.log_sum_exp);
  const unsigned top = count(row.top.size(), limits::kTopLogits, "top logits of a row");
  auto tokens = out.initTopTokens(top);
  auto logits = out.initTopLogits(top);
  for (unsigned i = 0; i < top; ++i) {
    tokens.set(i, row.top[i].token);
    logits.set(i, row.top[i].logit);
  }
  if (!row.logits.empty())
    set_all(out.initLogits(count(row.logits.size(), limits::kVocab, "logits of a row")),
            row.logits);
}

void write(const OpProbe& probe, schema::OpProbe::Builder out) {
  out.setCommand(probe.command);
  out.setLayer(probe.layer);
  out.setStream(probe.stream);
  out.setOp(name(probe.op));
  out.setDigest(probe.digest);
  set_all(out.initRowDigests(count(probe.row_digests.size(), limits::kRows, "row digests")),
          probe.row_digests);
  out.setElementSize(probe.element_size_bytes);
  limits::check(probe.values.size(), limits::kChunkBytes, "bytes of probed values");
  out.setValues(kj::arrayPtr(probe.values.data(), probe.values.size()));
}

void write(const FindingSide& side, schema::Finding::Side::Builder out) {
  out.setOp(name(side.op));
  out.setBuffer(name(side.buffer));
  out.setLayer(side.layer);
  out.setStream(side.stream);
  out.setCommand(side.command);
  out.setStep(side.step);
  out.setAccess(codec::to_schema(side.access));
  out.setGeneration(side.generation);
}

}  // namespace

capnp::Text::Reader text(const std::string& value, uint64_t cap_bytes, const char* what) {
  limits::check(value.size(), cap_bytes, what);
  return {value.c_str(), value.size()};
}

schema::Access to_schema(Access access) {
  switch (access) {
    case Access::none:
      return schema::Access::NONE;
    case Access::read:
      return schema::Access::READ;
    case Access::write:
      return schema::Access::WRITE;
    case Access::update:
      return schema::Access::UPDATE;
    case Access::scratch:
      return schema::Access::SCRATCH;
  }
  unknown_enumerant("access", static_cast<unsigned>(access));
}

void write(const TraceHeader& value, schema::TraceHeader::Builder out) {
  write_common(value, out);
  out.setWorkload(long_text(value.workload));
  if (!value.sampling.empty()) out.setSampling(long_text(value.sampling));
  out.setStartedUnixUs(value.started_unix_us);
  if (value.redaction != Redaction::none) out.setRedaction(word(value.redaction));
  if (!value.redaction_salt.empty())
    out.setRedactionSalt(kj::arrayPtr(value.redaction_salt.data(), value.redaction_salt.size()));
  if (!value.place.set.empty()) out.setSet(name(value.place.set));
  out.setSetNumber(value.place.number);
  out.setSetPrevious(value.place.previous);
}

void write(const RunHeader& value, schema::RunHeader::Builder out) {
  write_common(value, out);
  out.setTraceDigest(value.trace_digest);
}

void write(const Step& value, RowCodec& rows, schema::Step::Builder out) {
  limits::check(value.rows.size(), limits::kRows, "rows of a step");
  out.setIndex(value.index);
  out.setPhase(to_schema(value.phase));
  out.setBucket(value.bucket);
  out.setTimeUs(value.time_us);
  out.setRowsLeftOut(value.rows_left_out);
  if (!value.departures.empty()) {
    auto list = out.initDepartures(count(value.departures.size(), limits::kRows, "departures"));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setRequest(value.departures[i].request);
      list[i].setReason(to_schema(value.departures[i].reason));
    }
  }
  if (!value.arrivals.empty()) {
    auto list = out.initArrivals(count(value.arrivals.size(), limits::kRows, "arrivals"));
    for (unsigned i = 0; i < list.size(); ++i) write_arrival(value.arrivals[i], list[i]);
  }
  if (!value.page_changes.empty()) {
    auto list = out.initPageChanges(
        count(value.page_changes.size(), limits::kPageChanges, "page changes of a step"));
    for (unsigned i = 0; i < list.size(); ++i) {
      const PageChange& change = value.page_changes[i];
      list[i].setRequest(change.request);
      list[i].setIndex(change.index);
      list[i].setPage(change.page);
      list[i].setShared(change.shared);
    }
  }
  write_columns(rows.encode(value), out);
}

void write(const Departure& value, schema::Departure::Builder out) {
  out.setRequest(value.request);
  out.setReason(to_schema(value.reason));
}

void write(const Arrival& value, schema::Arrival::Builder out) { write_arrival(value, out); }

void write(const StepOutput& value, schema::StepOutput::Builder out) {
  out.setStep(value.step);
  auto rows = out.initRows(count(value.rows.size(), limits::kRows, "output rows of a step"));
  for (unsigned i = 0; i < rows.size(); ++i) write(value.rows[i], rows[i]);
  if (!value.ops.empty()) {
    auto ops = out.initOps(count(value.ops.size(), limits::kProbes, "probes of a step"));
    for (unsigned i = 0; i < ops.size(); ++i) write(value.ops[i], ops[i]);
  }
  if (!value.order.empty()) out.setOrder(long_text(value.order));
}

void write(const Finding& value, schema::Finding::Builder out) {
  out.setKind(to_schema(value.kind));
  out.setStep(value.step);
  out.setRequest(value.request);
  out.setLayer(value.layer);
  write(value.first, out.initFirst());
  write(value.second, out.initSecond());
  out.setOffset(value.offset_bytes);
  out.setSize(value.size_bytes);
  out.setMissingEdge(long_text(value.missing_edge));
  out.setAdvice(long_text(value.advice));
  if (!value.check.empty()) out.setCheck(long_text(value.check));
  out.setSeverity(value.severity == Severity::unusual ? schema::Severity::UNUSUAL
                                                      : schema::Severity::CONFLICTING);
}

void write(const EndTotals& value, schema::End::Builder out) {
  out.setChunks(value.chunks);
  out.setRecords(value.records);
  out.setSteps(value.steps);
  out.setRows(value.rows);
  out.setOutputs(value.outputs);
  out.setDigest(value.digest);
  out.setGaps(value.gaps);
  out.setStepsLost(value.steps_lost);
  out.setEvents(value.events);
  out.setExchanges(value.exchanges);
}

}  // namespace redecode::codec
