#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>
#include <set>

#include "tests/traces/random_values.h"
#include "tests/traces/temp_folder.h"
#include "traces/edit/block_hasher.h"
#include "traces/edit/redact.h"
#include "traces/error.h"
#include "traces/inspect.h"

namespace redecode {
namespace {

SealKey key_of(uint8_t byte) {
  SealKey key{};
  key.fill(byte);
  return key;
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Steps of random requests, an exchange and an event with text.
std::filesystem::path make_trace(const test::TempFolder& folder) {
  TraceHeader header = test::sample_trace_header();
  TraceWriter writer(folder / "t.rdt", header, {.chunk_steps = 16});
  test::StepMaker maker(header, 8);
  for (int i = 0; i < 60; ++i) {
    writer.write(maker.next());
    if (i == 20) {
      Exchange e;
      e.path = "/v1/completions";
      e.prompt = std::string(600, 'p') + "tail";
      e.prompt_bytes = e.prompt.size();
      e.stop = {"halt"};
      e.choices = {{"an answer", 9, "stop"}, {"another", 7, "length"}};
      writer.write(e);
    }
    if (i == 30) {
      Event event;
      event.before_step = 31;
      event.text = "a private note";
      writer.write(event);
    }
  }
  writer.close();
  return folder / "t.rdt";
}

ErrorCode code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("accepted");
  return ErrorCode::usage;
}

}  // namespace

TEST_CASE("seal: opens with its key and label only, and any change shows", "[seal]") {
  const auto plain = bytes_of("tokens");
  const std::string sealed = seal(key_of(1), "step 4 0/1", plain);
  CHECK(unseal(key_of(1), "step 4 0/1", sealed) == plain);
  CHECK_FALSE(unseal(key_of(2), "step 4 0/1", sealed));
  CHECK_FALSE(unseal(key_of(1), "step 5 0/1", sealed));
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    if (changed != sealed) CHECK(unseal(key_of(1), "step 4 0/1", changed) != plain);
  }
  CHECK_FALSE(unseal(key_of(1), "x", ""));
  CHECK_FALSE(unseal(key_of(1), "x", "AAAA"));
  CHECK(unseal(key_of(1), "empty", seal(key_of(1), "empty", {})) == std::vector<uint8_t>{});
}

TEST_CASE("seal: no nonce serves two texts", "[seal]") {
  std::set<std::string> nonces;
  for (int i = 0; i < 2000; ++i) {
    const auto text = std::to_string(i % 1000);
    nonces.insert(
        seal(key_of(3), "step " + std::to_string(i / 1000), bytes_of(text)).substr(0, 16));
  }
  CHECK(nonces.size() == 2000);
  CHECK(seal(key_of(3), "a", bytes_of("b")) == seal(key_of(3), "a", bytes_of("b")));
}

TEST_CASE("seal: key files", "[seal]") {
  const test::TempFolder folder;
  const auto write = [&](std::string_view text) {
    test::write_bytes(folder / "key", bytes_of(text));
    return folder / "key";
  };
  CHECK(load_seal_key(write(std::string(64, '0') + "\n")) == key_of(0));
  CHECK(load_seal_key(write(std::string(32, '\x07'))) == key_of(7));
  CHECK(code_of([&] { load_seal_key(write("short")); }) == ErrorCode::usage);
  CHECK(code_of([&] { load_seal_key(folder / "none"); }) == ErrorCode::missing);
}

TEST_CASE("redact: an encrypted trace shows nothing, and comes back whole", "[seal]") {
  const test::TempFolder folder;
  const auto path = make_trace(folder);
  RedactOptions options;
  options.keep = Redaction::encrypted;
  options.key = key_of(9);
  redact(path, folder / "e.rdt", false, options);
  CHECK(prove_redacted(folder / "e.rdt").holds());
  CHECK(verify_file(folder / "e.rdt").sound);
  decrypt(folder / "e.rdt", folder / "d.rdt", false, options.key);
  const Trace before = load_trace(path), after = load_trace(folder / "d.rdt");
  CHECK(after.steps == before.steps);
  CHECK(after.exchanges == before.exchanges);
  CHECK(after.events == before.events);
  CHECK(after.header.redaction == Redaction::none);
  redact(path, folder / "e2.rdt", false, options);
  CHECK(test::read_bytes(folder / "e.rdt") == test::read_bytes(folder / "e2.rdt"));
}

TEST_CASE("redact: another key, a plain trace, a broken seal", "[seal]") {
  const test::TempFolder folder;
  const auto path = make_trace(folder);
  RedactOptions options;
  options.keep = Redaction::encrypted;
  options.key = key_of(9);
  redact(path, folder / "e.rdt", false, options);
  CHECK(code_of([&] { decrypt(folder / "e.rdt", folder / "d.rdt", true, key_of(8)); }) ==
        ErrorCode::usage);
  CHECK(code_of([&] { decrypt(path, folder / "d.rdt", true, options.key); }) == ErrorCode::usage);
  const Trace trace = load_trace(folder / "e.rdt");
  TraceWriter writer(folder / "broken.rdt", trace.header, {}, true);
  bool first = true;
  for (const Event& e : trace.events) {
    Event copy = e;
    if (!first && !copy.text.empty()) copy.text.back() = copy.text.back() == 'A' ? 'B' : 'A';
    first = false;
    writer.write(copy);
  }
  for (const Step& s : trace.steps) writer.write(s);
  writer.close();
  CHECK(code_of([&] { decrypt(folder / "broken.rdt", folder / "d.rdt", true, options.key); }) ==
        ErrorCode::corrupt);
}

TEST_CASE("redact: hashes show equal prefixes under one salt, and nothing else", "[seal]") {
  const test::TempFolder folder;
  TraceHeader header = test::sample_trace_header();
  header.engine.page_size = 4;
  {
    TraceWriter writer(folder / "t.rdt", header, {});
    Step step;
    step.phase = Phase::prefill;
    for (RequestId r = 0; r < 3; ++r) {
      Arrival a;
      a.request = r;
      a.session = r;
      a.prompt_tokens = 8;
      step.arrivals.push_back(a);
      step.page_changes.push_back({r, 0, 1 + 2 * r, true});
      step.page_changes.push_back({r, 1, 2 + 2 * r, true});
      for (uint32_t at = 0; at < 8; ++at) {
        // Requests 0 and 1 share their first page, request 2 shares only the second page's tokens.
        const int32_t token = at < 4 ? (r == 2 ? 9 : 5) : (r == 1 ? 7 : 6);
        step.rows.push_back({r, at, token, (1 + 2 * r + at / 4) * 4 + at % 4, at == 7});
      }
    }
    writer.write(step);
    writer.close();
  }
  RedactOptions options;
  options.keep = Redaction::hashes;
  options.salt = bytes_of("0123456789abcdef");
  redact(folder / "t.rdt", folder / "h.rdt", false, options);
  CHECK(prove_redacted(folder / "h.rdt").holds());
  std::map<std::pair<std::string, std::string>, std::string> hashes;
  const Trace hashed = load_trace(folder / "h.rdt");
  for (const Event& e : hashed.events) {
    const std::string rest = e.text.substr(5);
    const size_t a = rest.find(' '), b = rest.rfind(' ');
    hashes[{rest.substr(0, a), rest.substr(a + 1, b - a - 1)}] = rest.substr(b + 1);
  }
  REQUIRE(hashes.size() == 6);
  CHECK(hashes[{"0", "0"}] == hashes[{"1", "0"}]);
  CHECK(hashes[{"0", "1"}] != hashes[{"1", "1"}]);
  CHECK(hashes[{"0", "1"}] != hashes[{"2", "1"}]);
  options.salt = bytes_of("another salt 123");
  redact(folder / "t.rdt", folder / "h2.rdt", false, options);
  CHECK(load_trace(folder / "h2.rdt").events[0].text != hashed.events[0].text);
  options.salt = bytes_of("short");
  CHECK(code_of([&] { redact(folder / "t.rdt", folder / "x.rdt", true, options); }) ==
        ErrorCode::usage);
}

TEST_CASE("redact: a prefix from the cache has the hashes of who filled its pages", "[seal]") {
  const std::vector<uint8_t> salt = bytes_of("0123456789abcdef");
  BlockHasher hasher(salt, 2);
  const auto hash_of = [](const Event& e) { return e.text.substr(e.text.rfind(' ') + 1); };
  std::vector<Event> notes;
  Step first;
  first.page_changes = {{7, 0, 1, false}, {7, 1, 2, false}};
  for (uint32_t i = 0; i < 4; ++i) first.rows.push_back({7, i, static_cast<int32_t>(i), 2 + i});
  hasher.add(first, notes);
  REQUIRE(notes.size() == 2);

  // Request 8 shares both pages; its last cached token runs again and is not hashed twice.
  Step second;
  second.page_changes = {{8, 0, 1, true}, {8, 1, 2, true}, {8, 2, 3, false}};
  second.rows = {{8, 3, 3, 5}, {8, 4, 9, 6}, {8, 5, 9, 7}};
  hasher.add(second, notes);
  REQUIRE(notes.size() == 5);
  CHECK(hash_of(notes[2]) == hash_of(notes[0]));
  CHECK(hash_of(notes[3]) == hash_of(notes[1]));
  CHECK(notes[4].text.starts_with("hash 8 2 "));
  CHECK(hash_of(notes[4]) != hash_of(notes[1]));

  // A page that was given away, and one from before a loss, have nothing to share.
  Step third;
  third.page_changes = {{9, 0, 1, false}, {10, 0, 1, true}};
  hasher.add(third, notes);
  CHECK(notes.size() == 5);
  hasher.forget();
  Step fourth;
  fourth.page_changes = {{11, 0, 2, true}};
  fourth.rows = {{8, 6, 1, 8}, {8, 7, 1, 9}};
  hasher.add(fourth, notes);
  CHECK(notes.size() == 5);
  for (const Event& e : notes) CHECK(is_hash_note(e));
}

TEST_CASE("redact: the proof takes nothing for a hash or a seal that is none", "[seal]") {
  const test::TempFolder folder;
  const auto holds = [&](Redaction kept, std::string text) {
    TraceHeader header = test::sample_trace_header();
    header.redaction = kept;
    header.workload.clear();
    header.environment.clear();
    TraceWriter writer(folder / "p.rdt", header, {}, true);
    Event event;
    event.kind = EventKind::note;
    event.text = std::move(text);
    writer.write(event);
    writer.close();
    return prove_redacted(folder / "p.rdt").holds();
  };
  const std::string hash = "hash 1 0 0123456789abcdef", sealed = "sealed step 4 0/1 AAAA";
  CHECK(holds(Redaction::hashes, hash));
  CHECK(holds(Redaction::encrypted, sealed));
  CHECK_FALSE(holds(Redaction::lengths, hash));
  CHECK_FALSE(holds(Redaction::encrypted, hash));
  CHECK_FALSE(holds(Redaction::hashes, sealed));
  CHECK_FALSE(holds(Redaction::hashes, "hash of my password 0123456789abcdef"));
  CHECK_FALSE(holds(Redaction::hashes, hash + " and more"));
  CHECK_FALSE(holds(Redaction::encrypted, "sealed with a kiss"));
  CHECK_FALSE(holds(Redaction::encrypted, sealed + " and more"));
  CHECK_FALSE(holds(Redaction::encrypted, "sealed words 4 0/1 AAAA"));
}

TEST_CASE("redact: pieces of a seal in another order do not open", "[seal]") {
  const test::TempFolder folder;
  {
    TraceWriter writer(folder / "t.rdt", test::sample_trace_header(), {});
    Exchange e;
    e.path = "/v1/completions";
    e.prompt = std::string(3500, 'p') + std::string(3500, 'q');
    e.prompt_bytes = e.prompt.size();
    writer.write(e);
    writer.close();
  }
  RedactOptions options;
  options.keep = Redaction::encrypted;
  options.key = key_of(9);
  redact(folder / "t.rdt", folder / "e.rdt", false, options);
  const Trace trace = load_trace(folder / "e.rdt");
  REQUIRE(trace.events.size() == 3);
  decrypt(folder / "e.rdt", folder / "d.rdt", false, options.key);
  CHECK(load_trace(folder / "d.rdt").exchanges.front().prompt.ends_with("qq"));
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{1, 0, 2}, std::vector<size_t>{0, 2}, std::vector<size_t>{0, 0, 1, 2}}) {
    TraceWriter writer(folder / "m.rdt", trace.header, {}, true);
    for (const size_t i : order) writer.write(trace.events[i]);
    writer.write(trace.exchanges.front());
    writer.close();
    CHECK(code_of([&] { decrypt(folder / "m.rdt", folder / "d.rdt", true, options.key); }) ==
          ErrorCode::corrupt);
  }
}

}  // namespace redecode
