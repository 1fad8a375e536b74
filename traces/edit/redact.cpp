#include "traces/edit/redact.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "traces/edit/block_hasher.h"
#include "traces/edit/redaction_note.h"
#include "traces/edit/same_file.h"
#include "traces/error.h"

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

constexpr std::string_view kSealedWord = "sealed ";
// What base64 and the label make of it stays below the 4,096 bytes of an event's text.
constexpr size_t kSealedPieceBytes = 2900;

// Notes that hold what was taken out of the record after them, in pieces.
void append_sealed(const SealKey& key, StepIndex before_step, const std::string& kind,
                   std::span<const uint8_t> plain, std::vector<Event>& out) {
  const size_t pieces =
      std::max<size_t>(1, (plain.size() + kSealedPieceBytes - 1) / kSealedPieceBytes);
  for (size_t i = 0; i < pieces; ++i) {
    const size_t from = i * kSealedPieceBytes;
    const auto piece = plain.subspan(from, std::min(kSealedPieceBytes, plain.size() - from));
    const std::string label = kind + ' ' + std::to_string(i) + '/' + std::to_string(pieces);
    out.push_back(note(before_step, kNoRequest,
                       std::string(kSealedWord) + label + ' ' + seal(key, label, piece)));
  }
}

std::vector<int32_t> tokens_of(const Step& step) {
  std::vector<int32_t> out;
  for (const Row& row : step.rows) out.push_back(row.token);
  return out;
}

std::vector<int32_t> tokens_of(const StepOutput& output) {
  std::vector<int32_t> out;
  for (const RowOutput& row : output.rows) out.push_back(row.token);
  return out;
}

std::string step_kind(const Step& s) { return "step " + std::to_string(s.index); }
std::string output_kind(const StepOutput& o) { return "output " + std::to_string(o.step); }
std::string exchange_kind(const Exchange& e) { return "exchange " + std::to_string(e.number); }
std::string event_kind(uint64_t n) { return "event " + std::to_string(n); }

// Length and bytes of each text of an exchange, in one piece.
std::vector<uint8_t> texts_of(const Exchange& e) {
  std::vector<uint8_t> out;
  const auto add = [&](const std::string& text) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(text.size() >> (8 * i)));
    out.insert(out.end(), text.begin(), text.end());
  };
  add(e.prompt);
  add(std::to_string(e.stop.size()));
  for (const std::string& stop : e.stop) add(stop);
  for (const ExchangeChoice& choice : e.choices) add(choice.text);
  return out;
}

class TextReader {
 public:
  TextReader(std::span<const uint8_t> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}
  std::string next() {
    if (bytes_.size() < 4) fail();
    size_t size = 0;
    for (int i = 0; i < 4; ++i) size |= size_t{bytes_[static_cast<size_t>(i)]} << (8 * i);
    if (size > bytes_.size() - 4) fail();
    std::string out(bytes_.begin() + 4, bytes_.begin() + 4 + static_cast<std::ptrdiff_t>(size));
    bytes_ = bytes_.subspan(4 + size);
    return out;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::corrupt, "a sealed text is shorter than it says", where_);
  }
  std::span<const uint8_t> bytes_;
  std::string where_;
};

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

void look_at(const Exchange& e, Redaction kept, Left& left) {
  const std::string where = "exchange " + std::to_string(e.number);
  left.look(e.prompt.empty(), where + ": its prompt");
  left.look(e.stop.empty(), where + ": its stop strings");
  left.look(e.block_hashes.empty() || kept == Redaction::hashes, where + ": hashes of its prompt");
  for (const ExchangeChoice& choice : e.choices)
    left.look(choice.text.empty(), where + ": its answer");
}

}  // namespace

namespace {

class Redacter {
 public:
  Redacter(const RedactOptions& options, uint32_t page_size, TraceWriter& writer)
      : options_(options), hasher_(options.salt, page_size), writer_(writer) {}

  void write(TraceRecord& record) {
    if (record.step) step(*record.step);
    if (record.output) output(*record.output);
    if (record.event) event(*record.event);
    if (record.exchange) exchange(*record.exchange);
    if (record.gap) {
      hasher_.forget();
      writer_.write(*record.gap);
    }
  }
  const RedactResult& result() const { return result_; }

 private:
  bool encrypts() const { return options_.keep == Redaction::encrypted; }
  void notes() {
    for (const Event& e : notes_) writer_.write(e);
    notes_.clear();
  }

  void step(Step& s) {
    if (options_.keep == Redaction::hashes) hasher_.add(s, notes_);
    if (encrypts() && !s.rows.empty())
      append_sealed(options_.key, s.index, step_kind(s), bytes_of(tokens_of(s)), notes_);
    notes();
    take_out(s, result_);
    writer_.write(s);
    last_step_ = s.index;
    ++result_.steps;
  }
  void output(StepOutput& o) {
    if (encrypts() && !o.rows.empty())
      append_sealed(options_.key, o.step, output_kind(o), bytes_of(tokens_of(o)), notes_);
    take_out(o);
    writer_.write(o);
    notes();  // behind the output: an output stands right behind its step
    ++result_.outputs;
  }
  void event(Event& e) {
    if (encrypts() && !e.text.empty()) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(e.text.data());
      append_sealed(options_.key, e.before_step, event_kind(result_.events), {bytes, e.text.size()},
                    notes_);
    }
    notes();
    take_out(e.text, result_);
    writer_.write(e);
    ++result_.events;
  }
  void exchange(Exchange& e) {
    if (encrypts()) append_sealed(options_.key, last_step_, exchange_kind(e), texts_of(e), notes_);
    notes();
    std::vector<uint64_t> hashes;
    if (options_.keep == Redaction::hashes) hashes = hasher_.hashes_of(e.prompt);
    take_out(e, result_);
    e.block_hashes = std::move(hashes);
    writer_.write(e);
    ++result_.exchanges;
  }

  const RedactOptions& options_;
  BlockHasher hasher_;
  TraceWriter& writer_;
  std::vector<Event> notes_;
  StepIndex last_step_ = 0;
  RedactResult result_;
};

bool is_sealed(const Event& e) {
  return e.kind == EventKind::note && e.text.starts_with(kSealedWord);
}

// "KIND N I/M BASE64": nothing that anybody wrote fits in between.
bool has_form_of_seal(std::string_view text) {
  text.remove_prefix(kSealedWord.size());
  const std::string_view kind = take_word(text), number = take_word(text);
  std::string_view piece = take_word(text);
  const size_t slash = std::min(piece.find('/'), piece.size());
  const bool is_label =
      (kind == "step" || kind == "output" || kind == "event" || kind == "exchange") &&
      is_of(number, kDigits) && is_of(piece.substr(0, slash), kDigits) && slash < piece.size() &&
      is_of(piece.substr(slash + 1), kDigits);
  return is_label && is_of(text,
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                           "0123456789+/=");
}

bool may_stay(const Event& e, Redaction kept) {
  if (e.text.empty()) return true;
  if (kept == Redaction::hashes) return is_hash_note(e);
  return kept == Redaction::encrypted && is_sealed(e) && has_form_of_seal(e.text);
}

// Pieces by kind, as they come in; whole ones are taken by the record they are of.
class Unsealer {
 public:
  explicit Unsealer(const SealKey& key) : key_(key) {}

  void add(const Event& e) {
    const std::string_view text = std::string_view(e.text).substr(kSealedWord.size());
    const size_t end = text.rfind(' ');
    const std::string where = "before step " + std::to_string(e.before_step);
    if (end == std::string_view::npos)
      throw Error(ErrorCode::corrupt, "a seal without a label", where);
    const std::string label(text.substr(0, end));
    const auto plain = unseal(key_, label, text.substr(end + 1));
    if (!plain)
      throw Error(opened_any_ ? ErrorCode::corrupt : ErrorCode::usage,
                  opened_any_ ? "the seal '" + label + "' is broken"
                              : "this key does not open the trace, or its first seal is broken",
                  where);
    opened_any_ = true;
    const size_t space = label.rfind(' ');
    Pieces& pieces = pieces_[label.substr(0, space)];
    const size_t slash = label.find('/', space);
    if (label.substr(space + 1, slash - space - 1) != std::to_string(pieces.count))
      throw Error(ErrorCode::corrupt, "the seal '" + label + "' stands out of its order", where);
    ++pieces.count;
    pieces.bytes.insert(pieces.bytes.end(), plain->begin(), plain->end());
  }

  std::optional<std::vector<uint8_t>> take(const std::string& kind) {
    const auto at = pieces_.find(kind);
    if (at == pieces_.end()) return std::nullopt;
    auto out = std::move(at->second.bytes);
    pieces_.erase(at);
    return out;
  }

  std::vector<int32_t> tokens(const std::string& kind, size_t count) {
    const auto bytes = take(kind);
    if (!bytes || bytes->size() != count * sizeof(int32_t))
      throw Error(ErrorCode::corrupt, "its tokens are not there in full", kind);
    std::vector<int32_t> out(count);
    if (count != 0) std::memcpy(out.data(), bytes->data(), bytes->size());
    return out;
  }

 private:
  const SealKey& key_;
  bool opened_any_ = false;
  struct Pieces {
    size_t count = 0;
    std::vector<uint8_t> bytes;
  };
  std::map<std::string, Pieces> pieces_;
};

void put_back(Unsealer& unsealer, Exchange& e) {
  const auto bytes = unsealer.take(exchange_kind(e));
  if (!bytes) throw Error(ErrorCode::corrupt, "its texts are not there", exchange_kind(e));
  TextReader reader(*bytes, exchange_kind(e));
  e.prompt = reader.next();
  const size_t stops = std::min<size_t>(std::stoul("0" + reader.next()), 1024);
  for (size_t i = 0; i < stops; ++i) e.stop.push_back(reader.next());
  for (ExchangeChoice& choice : e.choices) choice.text = reader.next();
}

}  // namespace

RedactResult redact(const std::filesystem::path& from, const std::filesystem::path& to,
                    bool overwrite, const RedactOptions& options) {
  refuse_same_file(from, to);
  constexpr size_t kLeastSaltBytes = 16;
  if (options.keep == Redaction::hashes && options.salt.size() < kLeastSaltBytes)
    throw Error(ErrorCode::usage, "a salt must have at least 16 bytes: openssl rand -out FILE 32",
                "--salt");
  TraceReader reader(from);
  TraceHeader header = reader.header();
  header.place = SetPlace();
  header.redaction = options.keep;
  header.workload.clear();
  header.environment.clear();
  TraceWriter writer(to, header, {.layout = StepLayout::columns}, overwrite);
  Redacter redacter(options, header.engine.page_size, writer);
  TraceRecord record;
  bool restored = false;
  while (reader.next(record)) {
    if (!restored) writer.restore(reader.start());
    restored = true;
    redacter.write(record);
  }
  writer.close();
  return redacter.result();
}

RedactResult decrypt(const std::filesystem::path& from, const std::filesystem::path& to,
                     bool overwrite, const SealKey& key) {
  refuse_same_file(from, to);
  // Seals of an output stand behind it: a first pass opens them all.
  Unsealer unsealer(key);
  {
    TraceReader reader(from);
    if (reader.header().redaction != Redaction::encrypted)
      throw Error(ErrorCode::usage, "the trace is not encrypted", from);
    TraceRecord record;
    while (reader.next(record))
      if (record.event && is_sealed(*record.event)) unsealer.add(*record.event);
  }
  TraceReader reader(from);
  TraceHeader header = reader.header();
  header.redaction = Redaction::none;
  TraceWriter writer(to, header, {.layout = StepLayout::columns}, overwrite);
  RedactResult result;
  TraceRecord record;
  bool restored = false;
  while (reader.next(record)) {
    if (!restored) writer.restore(reader.start());
    restored = true;
    if (record.event && is_sealed(*record.event)) continue;
    if (record.step) {
      Step& s = *record.step;
      if (!s.rows.empty()) {
        const auto tokens = unsealer.tokens(step_kind(s), s.rows.size());
        for (size_t i = 0; i < tokens.size(); ++i) s.rows[i].token = tokens[i];
      }
      result.tokens += s.rows.size();
      writer.write(s);
      ++result.steps;
    } else if (record.output) {
      StepOutput& o = *record.output;
      if (!o.rows.empty()) {
        const auto tokens = unsealer.tokens(output_kind(o), o.rows.size());
        for (size_t i = 0; i < tokens.size(); ++i) o.rows[i].token = tokens[i];
      }
      writer.write(o);
      ++result.outputs;
    } else if (record.event) {
      if (const auto text = unsealer.take(event_kind(result.events)))
        record.event->text.assign(text->begin(), text->end());
      writer.write(*record.event);
      ++result.events;
    } else if (record.exchange) {
      put_back(unsealer, *record.exchange);
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
  const Redaction kept = reader.header().redaction;
  TraceRecord record;
  while (reader.next(record)) {
    if (record.step) look_at(*record.step, left);
    if (record.output) look_at(*record.output, left);
    if (record.exchange) look_at(*record.exchange, kept, left);
    if (record.event)
      left.look(may_stay(*record.event, kept),
                "event before step " + std::to_string(record.event->before_step) + ": its text");
  }
  proof.chunks = reader.summary().chunks;
  return proof;
}

}  // namespace redecode
