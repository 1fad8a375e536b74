#include "traces/values_codec.h"

namespace redecode::codec {
namespace {

std::string name(capnp::Text::Reader in) {
  return take_text(in, limits::kNameBytes, "bytes of a name");
}

std::string long_text(capnp::Text::Reader in) {
  return take_text(in, limits::kTextBytes, "bytes of a text");
}

template <class E>
void read_word(capnp::Text::Reader in, const char* what, E& out) {
  const std::string word = name(in);
  if (!from_text(word, out)) {
    throw Error(ErrorCode::version,
                std::string("mode says ") + what + " \"" + word + "\", which is unknown here");
  }
}

template <class T, class ListReader>
std::vector<T> take_list(ListReader in, uint64_t cap, const char* what) {
  limits::check(in.size(), cap, what);
  std::vector<T> out(in.size());
  for (unsigned i = 0; i < in.size(); ++i) out[i] = static_cast<T>(in[i]);
  return out;
}

std::vector<std::string> take_texts(capnp::List<capnp::Text>::Reader in, const char* what) {
  limits::check(in.size(), limits::kListedTexts, what);
  std::vector<std::string> out;
  out.reserve(in.size());
  for (const auto text : in) out.push_back(name(text));
  return out;
}

void read(schema::ModelIdentity::Reader in, ModelIdentity& value) {
  value.family = name(in.getFamily());
  value.spec = name(in.getSpec());
  value.config_digest = in.getConfigDigest();
  value.weights_digest = in.getWeightsDigest();
  value.vocab = in.getVocab();
  value.layers = in.getLayers();
  value.weights_sha256 = name(in.getWeightsSha256());
  value.tokenizer_sha256 = name(in.getTokenizerSha256());
  value.config_sha256 = name(in.getConfigSha256());
}

void read(schema::EngineSettings::Reader in, EngineSettings& value) {
  value.page_size = in.getPageSize();
  value.page_count = in.getPageCount();
  value.max_batch_rows = in.getMaxBatchRows();
  value.max_seq_len = in.getMaxSeqLen();
  value.buckets = take_list<uint32_t>(in.getBuckets(), limits::kBuckets, "buckets");
}

void read(schema::Mode::Reader in, Mode& value) {
  read_word(in.getStreams(), "streams", value.streams);
  read_word(in.getCapture(), "capture", value.capture);
  read_word(in.getBackend(), "backend", value.backend);
  read_word(in.getIndexKey(), "index keys", value.index_key);
  read_word(in.getTopk(), "topk", value.topk);
  read_word(in.getKernels(), "kernels", value.kernels);
  read_word(in.getFeedback(), "feedback", value.feedback);
  read_word(in.getProbe(), "probe", value.probe);
  value.order = long_text(in.getOrder());
  value.inject = take_texts(in.getInject(), "defect names");
  value.poison = in.getPoison();
  value.full_logits = in.getFullLogits();
}

template <class Reader, class Header>
void read_common(Reader in, Header& value) {
  value.writer = name(in.getWriter());
  read(in.getModel(), value.model);
  read(in.getEngine(), value.engine);
  read(in.getMode(), value.mode);
  value.environment = take_texts(in.getEnvironment(), "environment settings");
}

Phase from_schema(schema::Phase phase) {
  switch (phase) {
    case schema::Phase::PREFILL:
      return Phase::prefill;
    case schema::Phase::DECODE:
      return Phase::decode;
    case schema::Phase::MIXED:
      return Phase::mixed;
  }
  unknown_enumerant("phase", static_cast<unsigned>(phase));
}

DepartureReason from_schema(schema::DepartureReason reason) {
  switch (reason) {
    case schema::DepartureReason::FINISHED:
      return DepartureReason::finished;
    case schema::DepartureReason::PREEMPTED:
      return DepartureReason::preempted;
    case schema::DepartureReason::CANCELLED:
      return DepartureReason::cancelled;
    case schema::DepartureReason::FAILED:
      return DepartureReason::failed;
  }
  unknown_enumerant("departure reason", static_cast<unsigned>(reason));
}

FindingKind from_schema(schema::FindingKind kind) {
  switch (kind) {
    case schema::FindingKind::RACE:
      return FindingKind::race;
    case schema::FindingKind::USE_AFTER_FREE:
      return FindingKind::use_after_free;
    case schema::FindingKind::UNWRITTEN:
      return FindingKind::unwritten;
    case schema::FindingKind::STALE:
      return FindingKind::stale;
    case schema::FindingKind::FOREIGN:
      return FindingKind::foreign;
    case schema::FindingKind::FROZEN:
      return FindingKind::frozen;
    case schema::FindingKind::NUMERIC:
      return FindingKind::numeric;
    case schema::FindingKind::HANG:
      return FindingKind::hang;
  }
  unknown_enumerant("finding kind", static_cast<unsigned>(kind));
}

Arrival read_arrival(schema::Arrival::Reader in) {
  Arrival a;
  a.request = in.getRequest();
  a.session = in.getSession();
  a.round = in.getRound();
  a.prompt_tokens = in.getPromptTokens();
  a.cached_tokens = in.getCachedTokens();
  a.max_tokens = in.getMaxTokens();
  a.resumed = in.getResumed();
  a.sampling.temperature = in.getTemperature();
  a.sampling.top_k = in.getTopK();
  a.sampling.top_p = in.getTopP();
  a.sampling.min_p = in.getMinP();
  a.sampling.seed = in.getSeed();
  return a;
}

RowColumns read_columns(schema::Step::Reader in) {
  static constexpr const char* kWhat = "rows of a step";
  RowColumns c;
  limits::check(in.getRowCount(), limits::kRows, kWhat);
  c.row_count = in.getRowCount();
  c.requests = take_list<uint32_t>(in.getRequests(), limits::kRows, kWhat);
  c.positions = take_list<uint32_t>(in.getPositions(), limits::kRows, kWhat);
  c.tokens = take_list<uint16_t>(in.getTokens(), limits::kRows, kWhat);
  c.tokens_high = take_list<uint16_t>(in.getTokensHigh(), limits::kRows, kWhat);
  if (const auto packed = in.getPackedTokens(); packed.size() != 0) {
    if (packed.size() % 3 != 0 || !c.tokens.empty())
      throw Error(ErrorCode::corrupt, "packed tokens of a step are malformed");
    limits::check(packed.size() / 3, limits::kRows, kWhat);
    for (size_t i = 0; i < packed.size(); i += 3) {
      c.tokens.push_back(static_cast<uint16_t>(packed[i] | packed[i + 1] << 8));
      c.tokens_high.push_back(packed[i + 2]);
    }
  }
  c.slots = take_list<uint32_t>(in.getSlots(), limits::kRows, kWhat);
  c.wants_output = take_list<uint8_t>(in.getWantsOutput(), limits::kRows, kWhat);
  return c;
}

void read(schema::RowOutput::Reader in, RowOutput& row) {
  row.row = in.getRow();
  row.request = in.getRequest();
  row.position = in.getPosition();
  row.token = in.getToken();
  row.logits_digest = in.getLogitsDigest();
  row.log_sum_exp = in.getLogSumExp();
  const auto tokens = in.getTopTokens();
  const auto logits = in.getTopLogits();
  limits::check(tokens.size(), limits::kTopLogits, "top logits of a row");
  if (tokens.size() != logits.size())
    throw Error(ErrorCode::corrupt, "top tokens and top logits of a row differ in number");
  row.top.resize(tokens.size());
  for (unsigned i = 0; i < tokens.size(); ++i) row.top[i] = {tokens[i], logits[i]};
  row.logits = take_list<float>(in.getLogits(), limits::kVocab, "logits of a row");
}

void read(schema::OpProbe::Reader in, OpProbe& probe) {
  probe.command = in.getCommand();
  probe.layer = in.getLayer();
  probe.stream = in.getStream();
  probe.op = name(in.getOp());
  probe.digest = in.getDigest();
  probe.row_digests = take_list<Digest>(in.getRowDigests(), limits::kRows, "row digests");
  probe.element_size_bytes = in.getElementSize();
  if (probe.element_size_bytes > 4 || probe.element_size_bytes == 3)
    throw Error(ErrorCode::corrupt,
                "probe with elements of " + std::to_string(probe.element_size_bytes) + " bytes");
  const auto values = in.getValues();
  probe.values.assign(values.begin(), values.end());
}

FindingSide read_side(schema::Finding::Side::Reader in) {
  FindingSide side;
  side.op = name(in.getOp());
  side.buffer = name(in.getBuffer());
  side.layer = in.getLayer();
  side.stream = in.getStream();
  side.command = in.getCommand();
  side.step = in.getStep();
  side.access = codec::from_schema(in.getAccess());
  side.generation = in.getGeneration();
  return side;
}

}  // namespace

void unknown_enumerant(const char* what, unsigned value) {
  throw Error(ErrorCode::version,
              std::string(what) + " " + std::to_string(value) + " is unknown to this program");
}

std::string take_text(capnp::Text::Reader in, uint64_t cap_bytes, const char* what) {
  limits::check(in.size(), cap_bytes, what);
  return std::string(in.begin(), in.size());
}

Access from_schema(schema::Access access) {
  switch (access) {
    case schema::Access::NONE:
      return Access::none;
    case schema::Access::READ:
      return Access::read;
    case schema::Access::WRITE:
      return Access::write;
    case schema::Access::UPDATE:
      return Access::update;
    case schema::Access::SCRATCH:
      return Access::scratch;
  }
  unknown_enumerant("access", static_cast<unsigned>(access));
}

void read(schema::TraceHeader::Reader in, TraceHeader& value) {
  read_common(in, value);
  value.workload = long_text(in.getWorkload());
  value.sampling = long_text(in.getSampling());
  value.started_unix_us = in.getStartedUnixUs();
  const std::string redaction = name(in.getRedaction());
  if (!redaction.empty() && !from_text(redaction, value.redaction))
    throw Error(ErrorCode::version, "redaction \"" + redaction + "\" is unknown to this program");
  const auto salt = in.getRedactionSalt();
  limits::check(salt.size(), limits::kNameBytes, "bytes of a salt");
  value.redaction_salt.assign(salt.begin(), salt.end());
  value.place = {name(in.getSet()), in.getSetNumber(), in.getSetPrevious()};
}

void read(schema::RunHeader::Reader in, RunHeader& value) {
  read_common(in, value);
  value.trace_digest = in.getTraceDigest();
}

void read(schema::Step::Reader in, RowCodec& rows, Step& value) {
  value = Step();
  value.index = in.getIndex();
  value.phase = from_schema(in.getPhase());
  value.bucket = in.getBucket();
  value.time_us = in.getTimeUs();
  value.rows_left_out = in.getRowsLeftOut();
  const auto departures = in.getDepartures();
  limits::check(departures.size(), limits::kRows, "departures");
  for (const auto d : departures)
    value.departures.push_back({d.getRequest(), from_schema(d.getReason())});
  const auto arrivals = in.getArrivals();
  limits::check(arrivals.size(), limits::kRows, "arrivals");
  for (const auto a : arrivals) value.arrivals.push_back(read_arrival(a));
  const auto changes = in.getPageChanges();
  limits::check(changes.size(), limits::kPageChanges, "page changes of a step");
  for (const auto c : changes)
    value.page_changes.push_back({c.getRequest(), c.getIndex(), c.getPage(), c.getShared()});
  rows.decode(read_columns(in), value);
}

void read(schema::Departure::Reader in, Departure& value) {
  value = {in.getRequest(), from_schema(in.getReason())};
}

void read(schema::Arrival::Reader in, Arrival& value) { value = read_arrival(in); }

void read(schema::StepOutput::Reader in, StepOutput& value) {
  value = StepOutput();
  value.step = in.getStep();
  const auto rows = in.getRows();
  limits::check(rows.size(), limits::kRows, "output rows of a step");
  value.rows.resize(rows.size());
  for (unsigned i = 0; i < rows.size(); ++i) read(rows[i], value.rows[i]);
  const auto ops = in.getOps();
  limits::check(ops.size(), limits::kProbes, "probes of a step");
  value.ops.resize(ops.size());
  for (unsigned i = 0; i < ops.size(); ++i) read(ops[i], value.ops[i]);
  value.order = long_text(in.getOrder());
}

void read(schema::Finding::Reader in, Finding& value) {
  value.kind = from_schema(in.getKind());
  value.step = in.getStep();
  value.request = in.getRequest();
  value.layer = in.getLayer();
  value.first = read_side(in.getFirst());
  value.second = read_side(in.getSecond());
  value.offset_bytes = in.getOffset();
  value.size_bytes = in.getSize();
  value.missing_edge = long_text(in.getMissingEdge());
  value.advice = long_text(in.getAdvice());
  value.check = long_text(in.getCheck());
  value.severity = in.getSeverity() == schema::Severity::UNUSUAL ? Severity::unusual
                                                                 : Severity::conflicting;
}

void read(schema::End::Reader in, EndTotals& value) {
  value = {in.getChunks(), in.getRecords(), in.getSteps(),     in.getRows(),   in.getOutputs(),
           in.getDigest(), in.getGaps(),    in.getStepsLost(), in.getEvents(), in.getExchanges()};
}

}  // namespace redecode::codec
