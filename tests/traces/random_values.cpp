#include "tests/traces/random_values.h"

#include <bit>

namespace redecode::test {
namespace {

uint32_t any32(RandomSequence& random) {
  switch (random.below(4)) {
    case 0:
      return static_cast<uint32_t>(random.below(8));
    case 1:
      return UINT32_MAX - static_cast<uint32_t>(random.below(3));
    default:
      return static_cast<uint32_t>(random.next());
  }
}

// Any bits but a signalling NaN: a float may pass through a register on its way.
float any_float(RandomSequence& random) {
  const float value = std::bit_cast<float>(any32(random));
  return value == value ? value : 0.5f;
}

std::string any_text(RandomSequence& random, uint64_t max_bytes = 40) {
  std::string out(random.below(max_bytes), ' ');
  for (char& c : out) c = static_cast<char>(random.below(256));
  return out;
}

size_t count(RandomSequence& random, uint64_t bound) {
  return random.below(3) == 0 ? 0 : static_cast<size_t>(random.below(bound));
}

FindingSide any_side(RandomSequence& random) {
  return {any_text(random),
          any_text(random),
          any32(random),
          any32(random),
          any32(random),
          random.next(),
          static_cast<Access>(random.below(5)),
          random.next()};
}

}  // namespace

TraceHeader sample_trace_header() {
  TraceHeader header;
  header.writer = "redecode 0.1.0";
  header.model = {"dsv4", "dsv4-small:seed=1", 0x1234, 0xfedcba9876543210u, 129280, 4};
  header.engine = {16, 512, 64, 4096, {1, 2, 4, 8, 16, 32, 64}};
  header.mode.capture = CaptureMode::graph;
  header.mode.inject = {"a", "b"};
  header.mode.poison = true;
  header.workload = "agent sessions=60 \xE2\x82\xAC";
  header.environment = {"REDECODE_STREAMS=single"};
  return header;
}

RunHeader sample_run_header() {
  const TraceHeader trace = sample_trace_header();
  return {trace.writer, trace.model, trace.engine, trace.mode, 77, trace.environment};
}

Step arbitrary_step(RandomSequence& random, StepIndex index) {
  Step step;
  step.index = index;
  step.phase = static_cast<Phase>(random.below(3));
  step.bucket = any32(random);
  for (size_t i = count(random, 4); i > 0; --i)
    step.departures.push_back(
        {static_cast<RequestId>(random.below(6)), static_cast<DepartureReason>(random.below(4))});
  for (size_t i = count(random, 4); i > 0; --i) {
    Arrival a{static_cast<RequestId>(random.below(6)),
              any32(random),
              any32(random),
              any32(random),
              any32(random),
              any32(random),
              random.below(2) != 0,
              {}};
    a.sampling = {any_float(random), static_cast<int32_t>(any32(random)), any_float(random),
                  any_float(random), random.next()};
    step.arrivals.push_back(a);
  }
  for (size_t i = count(random, 8); i > 0; --i)
    step.page_changes.push_back({static_cast<RequestId>(random.below(6)),
                                 static_cast<uint32_t>(random.below(3)), any32(random),
                                 random.below(2) != 0});
  for (size_t i = count(random, 12); i > 0; --i)
    step.rows.push_back(
        {static_cast<RequestId>(random.below(6)),
         static_cast<uint32_t>(random.below(2) != 0 ? random.below(64) : any32(random)),
         static_cast<int32_t>(any32(random)), any32(random), random.below(4) != 0});
  return step;
}

StepOutput arbitrary_output(RandomSequence& random, StepIndex step) {
  StepOutput output;
  output.step = step;
  for (size_t i = count(random, 5); i > 0; --i) {
    RowOutput row;
    row.row = any32(random);
    row.request = any32(random);
    row.position = any32(random);
    row.token = static_cast<int32_t>(any32(random));
    row.logits_digest = random.next();
    row.log_sum_exp = any_float(random);
    for (size_t t = count(random, 20); t > 0; --t)
      row.top.push_back({static_cast<int32_t>(any32(random)), any_float(random)});
    for (size_t t = count(random, 50); t > 0; --t) row.logits.push_back(any_float(random));
    output.rows.push_back(std::move(row));
  }
  for (size_t i = count(random, 4); i > 0; --i) {
    static constexpr uint32_t kSizes[] = {0, 1, 2, 4};
    OpProbe probe;
    probe.command = any32(random);
    probe.layer = any32(random);
    probe.stream = any32(random);
    probe.op = any_text(random);
    probe.digest = random.next();
    for (size_t t = count(random, 5); t > 0; --t) probe.row_digests.push_back(random.next());
    probe.element_size_bytes = kSizes[random.below(4)];
    for (size_t t = count(random, 30); t > 0; --t)
      probe.values.push_back(static_cast<uint8_t>(random.next()));
    output.ops.push_back(std::move(probe));
  }
  output.order = any_text(random);
  return output;
}

Finding arbitrary_finding(RandomSequence& random) {
  return {static_cast<FindingKind>(random.below(7)),
          random.next(),
          any32(random),
          any32(random),
          any_side(random),
          any_side(random),
          random.next(),
          random.next(),
          any_text(random),
          any_text(random, 400),
          any_text(random, 40),
          random.below(2) == 0 ? Severity::conflicting : Severity::unusual};
}

Program arbitrary_program(RandomSequence& random) {
  Program p;
  auto names = std::make_shared<NameTable>();
  for (int i = 0; i < 8; ++i) names->intern("name" + std::to_string(i));
  auto persistents = std::make_shared<std::vector<PersistentBuffer>>();
  for (size_t i = 0; i < 3; ++i)
    persistents->push_back({static_cast<NameId>(random.below(8)), 4096, 256, i != 0});
  p.names = names;
  p.persistents = persistents;
  p.stream_count = 4;
  p.event_count = 3;
  for (size_t i = 0; i < 4; ++i)
    p.transients.push_back({static_cast<NameId>(random.below(8)),
                            static_cast<uint16_t>(random.below(9)),
                            static_cast<StreamId>(random.below(4)), 1024});
  const auto region = [&] {
    const uint32_t index = static_cast<uint32_t>(random.below(3));
    const BufferId id =
        random.below(2) != 0 ? BufferId::persistent(index) : BufferId::transient(index);
    return Region{id,
                  static_cast<Access>(random.below(5)),
                  random.below(512),
                  random.below(512),
                  static_cast<uint32_t>(random.below(64)),
                  any32(random)};
  };
  for (size_t i = count(random, 30); i > 0; --i) {
    Command c;
    c.kind = static_cast<CommandKind>(random.below(10));
    c.stream = random.below(8) == 0 ? kHost : static_cast<StreamId>(random.below(4));
    c.kernel = static_cast<KernelId>(random.next());
    c.name = static_cast<NameId>(random.below(8));
    c.layer = static_cast<uint16_t>(random.below(9));
    c.event = static_cast<EventId>(random.below(3));
    c.buffer = BufferId::transient(static_cast<uint32_t>(random.below(4)));
    c.first_region = static_cast<uint32_t>(p.regions.size());
    c.region_count = c.kind == CommandKind::fill ? 1 : 2;
    const Region first = region();
    p.regions.push_back(first);
    if (c.region_count == 2) p.regions.push_back(first);
    c.first_touched = static_cast<uint32_t>(p.touched.size());
    c.touched_count = static_cast<uint32_t>(random.below(3));
    for (uint32_t t = 0; t < c.touched_count; ++t) p.touched.push_back(region());
    c.first_arg = static_cast<uint32_t>(p.args.size());
    c.arg_count = 1;
    p.args.push_back({static_cast<int64_t>(random.next()), static_cast<ArgKind>(random.below(3))});
    p.commands.push_back(c);
  }
  return p;
}

StepMaker::StepMaker(const TraceHeader& header, uint64_t seed, uint32_t max_requests,
                     uint32_t vocab, uint32_t max_output)
    : header_(header),
      random_(seed),
      max_requests_(max_requests),
      vocab_(vocab == 0 ? header.model.vocab : vocab),
      max_output_(max_output) {}

void StepMaker::depart(Step& step) {
  for (auto it = running_.begin(); it != running_.end();) {
    if (it->second.position < it->second.end) {
      ++it;
      continue;
    }
    step.departures.push_back({it->first, DepartureReason::finished});
    for (const auto& [index, page] : it->second.pages) free_pages_.push_back(page);
    it = running_.erase(it);
  }
}

void StepMaker::arrive(Step& step) {
  const auto prompt = static_cast<uint32_t>(1 + random_.below(40));
  const auto output = static_cast<uint32_t>(1 + random_.below(max_output_));
  const RequestId id = next_request_++;
  Arrival arrival{id, id / 2, id % 2, prompt, 0, output, false, {}};
  arrival.sampling.temperature = 0.7f;
  arrival.sampling.seed = random_.next();
  step.arrivals.push_back(arrival);
  running_[id] = {0, prompt, prompt + output, {}};
}

void StepMaker::add_row(Step& step, RequestId id, Running& request, bool wants_output) {
  const uint32_t page_size = header_.engine.page_size;
  const uint32_t index = request.position / page_size;
  if (!request.pages.contains(index)) {
    PageId page = next_page_;
    if (free_pages_.empty()) {
      ++next_page_;
    } else {
      page = free_pages_.back();
      free_pages_.pop_back();
    }
    request.pages[index] = page;
    step.page_changes.push_back({id, index, page, false});
  }
  step.rows.push_back({id, request.position, static_cast<int32_t>(random_.below(vocab_)),
                       request.pages[index] * page_size + request.position % page_size,
                       wants_output});
  ++request.position;
}

Step StepMaker::next() {
  Step step;
  step.index = index_++;
  depart(step);
  if (running_.size() < max_requests_) {
    arrive(step);
    step.phase = Phase::prefill;
    const RequestId id = next_request_ - 1;
    Running& request = running_[id];
    while (request.position < request.prompt)
      add_row(step, id, request, request.position + 1 == request.prompt);
    return step;
  }
  step.phase = Phase::decode;
  for (auto& [id, request] : running_) add_row(step, id, request, true);
  for (const uint32_t bucket : header_.engine.buckets) {
    if (bucket < step.rows.size()) continue;
    step.bucket = bucket;
    break;
  }
  return step;
}

}  // namespace redecode::test
