#include "traces/values_codec.h"

// Keyframes, events, gaps, exchanges and the index; steps and outputs are in encode.cpp and
// decode.cpp.

namespace redecode::codec {
namespace {

template <class Values>
unsigned count(const Values& values, uint64_t cap, const char* what) {
  limits::check(values.size(), cap, what);
  return static_cast<unsigned>(values.size());
}

capnp::Text::Reader name(const std::string& value) {
  return text(value, limits::kNameBytes, "bytes of a name");
}

std::string name(capnp::Text::Reader in) {
  return take_text(in, limits::kNameBytes, "bytes of a name");
}

capnp::Text::Reader long_text(const std::string& value) {
  return text(value, limits::kChunkBytes, "bytes of a text");
}

std::string long_text(capnp::Text::Reader in) {
  return take_text(in, limits::kChunkBytes, "bytes of a text");
}

void write_pages(const Keyframe& value, schema::Keyframe::Builder out) {
  uint64_t entries = 0;
  for (const RunningRequest& r : value.running) entries += r.pages.size();
  limits::check(entries, limits::kChunkBytes / 8, "page table entries of a keyframe");
  auto counts = out.initPageCounts(static_cast<unsigned>(value.running.size()));
  auto pages = out.initPages(static_cast<unsigned>(entries));
  unsigned at = 0;
  for (unsigned i = 0; i < counts.size(); ++i) {
    uint32_t expected = 0;
    for (const PageId page : value.running[i].pages) {
      pages.set(at++, page - expected);
      expected = page + 1;
    }
    counts.set(i, static_cast<uint32_t>(value.running[i].pages.size()));
  }
}

}  // namespace

void write(const Keyframe& value, schema::Keyframe::Builder out) {
  out.setNextStep(value.next_step);
  const unsigned running = count(value.running, limits::kRunning, "running requests");
  auto arrivals = out.initRunning(running);
  auto positions = out.initNextPositions(running);
  unsigned incomplete = 0;
  for (unsigned i = 0; i < running; ++i) {
    write(value.running[i].arrival, arrivals[i]);
    positions.set(i, value.running[i].next_position);
    incomplete += value.running[i].complete ? 0 : 1;
  }
  write_pages(value, out);
  if (incomplete != 0) {
    auto list = out.initIncomplete(incomplete);
    unsigned at = 0;
    for (const RunningRequest& r : value.running)
      if (!r.complete) list.set(at++, r.arrival.request);
  }
  if (!value.preempted.empty()) {
    auto list = out.initPreempted(count(value.preempted, limits::kRunning, "preempted requests"));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, value.preempted[i]);
  }
}

void read(schema::Keyframe::Reader in, Keyframe& value) {
  value = Keyframe();
  value.next_step = in.getNextStep();
  const auto arrivals = in.getRunning();
  const auto positions = in.getNextPositions();
  const auto counts = in.getPageCounts();
  const auto pages = in.getPages();
  const auto incomplete = in.getIncomplete();
  const auto preempted = in.getPreempted();
  limits::check(arrivals.size(), limits::kRunning, "running requests");
  limits::check(preempted.size(), limits::kRunning, "preempted requests");
  if (positions.size() != arrivals.size() || counts.size() != arrivals.size())
    throw Error(ErrorCode::corrupt, "columns of a keyframe differ in length");
  uint64_t at = 0;
  unsigned incomplete_at = 0;
  value.running.resize(arrivals.size());
  for (unsigned i = 0; i < arrivals.size(); ++i) {
    RunningRequest& r = value.running[i];
    read(arrivals[i], r.arrival);
    if (i > 0 && r.arrival.request <= value.running[i - 1].arrival.request)
      throw Error(ErrorCode::corrupt, "requests of a keyframe do not ascend");
    r.next_position = positions[i];
    if (counts[i] > pages.size() - at)
      throw Error(ErrorCode::corrupt, "page tables of a keyframe are too short");
    uint32_t expected = 0;
    r.pages.reserve(counts[i]);
    for (uint32_t k = 0; k < counts[i]; ++k) {
      r.pages.push_back(pages[static_cast<unsigned>(at++)] + expected);
      expected = r.pages.back() + 1;
    }
    if (incomplete_at < incomplete.size() && incomplete[incomplete_at] == r.arrival.request) {
      r.complete = false;
      ++incomplete_at;
    }
  }
  for (const uint32_t request : preempted) value.preempted.push_back(request);
}

void write(const Event& value, schema::Event::Builder out) {
  out.setBeforeStep(value.before_step);
  out.setTimeUs(value.time_us);
  out.setKind(static_cast<uint16_t>(value.kind));
  out.setRequest(value.request);
  out.setA(value.a);
  out.setB(value.b);
  if (!value.text.empty()) out.setText(name(value.text));
}

void read(schema::Event::Reader in, Event& value) {
  if (in.getKind() > static_cast<uint16_t>(EventKind::note))
    unknown_enumerant("event kind", in.getKind());
  value = {.before_step = in.getBeforeStep(),
           .time_us = in.getTimeUs(),
           .kind = static_cast<EventKind>(in.getKind()),
           .request = in.getRequest(),
           .a = in.getA(),
           .b = in.getB(),
           .text = name(in.getText())};
}

void write(const Gap& value, schema::Gap::Builder out) {
  out.setFirst(value.first);
  out.setLast(value.last);
  out.setCount(value.count);
  out.setBytes(value.bytes);
  out.setCauses(value.causes);
}

void read(schema::Gap::Reader in, Gap& value) {
  value = {in.getFirst(), in.getLast(), in.getCount(), in.getBytes(), in.getCauses()};
  if (value.first > value.last || value.count > value.last - value.first + 1)
    throw Error(ErrorCode::corrupt, "a gap that cannot be");
}

void write(const Exchange& value, schema::Exchange::Builder out) {
  out.setNumber(value.number);
  out.setStartUs(value.start_us);
  out.setFirstUs(value.first_us);
  out.setEndUs(value.end_us);
  out.setPath(name(value.path));
  out.setModel(name(value.model));
  out.setStatus(value.status);
  out.setStreamed(value.streamed);
  out.setEnd(std::string(to_text(value.end)).c_str());
  out.setSession(value.session);
  out.setRound(value.round);
  out.setPrompt(long_text(value.prompt));
  out.setPromptBytes(value.prompt_bytes);
  out.setPromptTokens(value.prompt_tokens);
  out.setOutputTokens(value.output_tokens);
  auto hashes =
      out.initBlockHashes(count(value.block_hashes, limits::kBlockHashes, "block hashes"));
  for (unsigned i = 0; i < hashes.size(); ++i) hashes.set(i, value.block_hashes[i]);
  out.setMaxTokens(value.max_tokens);
  out.setChoiceCount(value.choice_count);
  out.setTemperature(value.sampling.temperature);
  out.setTopK(value.sampling.top_k);
  out.setTopP(value.sampling.top_p);
  out.setMinP(value.sampling.min_p);
  out.setSeed(value.sampling.seed);
  out.setHasSeed(value.has_seed);
  auto stops = out.initStop(count(value.stop, limits::kListedTexts, "stop strings"));
  for (unsigned i = 0; i < stops.size(); ++i) stops.set(i, name(value.stop[i]));
  auto choices = out.initChoices(count(value.choices, limits::kChoices, "choices"));
  for (unsigned i = 0; i < choices.size(); ++i) {
    choices[i].setText(long_text(value.choices[i].text));
    choices[i].setTextBytes(value.choices[i].text_bytes);
    choices[i].setFinishReason(name(value.choices[i].finish_reason));
  }
  auto times = out.initChunkUs(count(value.chunk_us, limits::kRecordsPerChunk, "chunk times"));
  uint64_t before_us = 0;
  for (unsigned i = 0; i < times.size(); ++i) {
    times.set(i, value.chunk_us[i] - before_us);
    before_us = value.chunk_us[i];
  }
}

void read(schema::Exchange::Reader in, Exchange& value) {
  value = Exchange();
  value.number = in.getNumber();
  value.start_us = in.getStartUs();
  value.first_us = in.getFirstUs();
  value.end_us = in.getEndUs();
  value.path = name(in.getPath());
  value.model = name(in.getModel());
  value.status = in.getStatus();
  value.streamed = in.getStreamed();
  const std::string end = name(in.getEnd());
  if (!from_text(end, value.end))
    throw Error(ErrorCode::version, "exchange end \"" + end + "\" is unknown to this program");
  value.session = in.getSession();
  value.round = in.getRound();
  value.prompt = long_text(in.getPrompt());
  value.prompt_bytes = in.getPromptBytes();
  value.prompt_tokens = in.getPromptTokens();
  value.output_tokens = in.getOutputTokens();
  limits::check(in.getBlockHashes().size(), limits::kBlockHashes, "block hashes");
  for (const uint64_t hash : in.getBlockHashes()) value.block_hashes.push_back(hash);
  value.max_tokens = in.getMaxTokens();
  value.choice_count = in.getChoiceCount();
  value.sampling = {.temperature = in.getTemperature(),
                    .top_k = in.getTopK(),
                    .top_p = in.getTopP(),
                    .min_p = in.getMinP(),
                    .seed = in.getSeed()};
  value.has_seed = in.getHasSeed();
  limits::check(in.getStop().size(), limits::kListedTexts, "stop strings");
  for (const auto stop : in.getStop()) value.stop.push_back(name(stop));
  limits::check(in.getChoices().size(), limits::kChoices, "choices");
  for (const auto choice : in.getChoices())
    value.choices.push_back(
        {long_text(choice.getText()), choice.getTextBytes(), name(choice.getFinishReason())});
  limits::check(in.getChunkUs().size(), limits::kRecordsPerChunk, "chunk times");
  uint64_t at_us = 0;
  for (const uint64_t difference : in.getChunkUs()) value.chunk_us.push_back(at_us += difference);
}

void write(const std::vector<ChunkEntry>& value, schema::FileIndex::Builder out) {
  auto chunks = out.initChunks(count(value, limits::kChunkBytes / 64, "chunks of an index"));
  for (unsigned i = 0; i < chunks.size(); ++i) {
    const ChunkEntry& entry = value[i];
    auto chunk = chunks[i];
    chunk.setOffset(entry.offset_bytes);
    chunk.setSize(entry.size_bytes);
    chunk.setNumber(entry.number);
    chunk.setFirstStep(entry.steps.first);
    chunk.setStepCount(entry.steps.count);
    chunk.setRecordCount(entry.record_count);
    chunk.setCrc(entry.stored_crc);
    chunk.setKind(entry.kind);
  }
}

void read(schema::FileIndex::Reader in, std::vector<ChunkEntry>& value) {
  value.clear();
  for (const auto chunk : in.getChunks())
    value.push_back({.offset_bytes = chunk.getOffset(),
                     .size_bytes = chunk.getSize(),
                     .number = chunk.getNumber(),
                     .kind = chunk.getKind(),
                     .record_count = chunk.getRecordCount(),
                     .steps = {chunk.getFirstStep(), chunk.getStepCount()},
                     .stored_crc = chunk.getCrc()});
}

}  // namespace redecode::codec
