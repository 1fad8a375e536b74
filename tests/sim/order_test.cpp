#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/device/order.h"
#include "engine/device/script.h"
#include "traces/error.h"
#include "traces/random.h"

using namespace redecode;

namespace {

template <class F>
Error error_of(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ErrorCode::usage, "");
}

Error order_error(const std::string& text) {
  return error_of([&] { make_order(text); });
}

std::vector<uint32_t> draws(Order& order, StepIndex step, size_t count, uint32_t ready_count) {
  order.begin_step(step);
  std::vector<uint32_t> picks;
  for (size_t i = 0; i < count; ++i) picks.push_back(order.choose(ready_count));
  return picks;
}

}  // namespace

TEST_CASE("fifo picks the oldest and lets the host run ahead") {
  const auto order = make_order("fifo");
  CHECK_FALSE(order->host_paced());
  CHECK(draws(*order, 3, 4, 9) == std::vector<uint32_t>(4, 0));
}

TEST_CASE("seeded draws depend on the seed, the step and the choice point alone") {
  const auto a = make_order("seed:7"), b = make_order("seed:7"), c = make_order("seed:8");
  const auto step5 = draws(*a, 5, 64, 1000);
  draws(*b, 4, 17, 3);
  CHECK(draws(*b, 5, 64, 1000) == step5);
  CHECK(draws(*b, 6, 64, 1000) != step5);
  CHECK(draws(*c, 5, 64, 1000) != step5);
  CHECK(step5[3] == random_below(random_bits(7, 5, 3), 1000));
  CHECK(std::set<uint32_t>(step5.begin(), step5.end()).size() > 40);
}

TEST_CASE("seeded draws cover all candidates and no more") {
  const auto order = make_order("seed:1");
  order->begin_step(0);
  std::array<int, 5> counts{};
  for (int i = 0; i < 5000; ++i) ++counts.at(order->choose(5));
  for (const int count : counts) CHECK((count > 850 && count < 1150));
}

TEST_CASE("paced keeps the host in step and seldom departs from fifo") {
  const auto paced = make_order("paced:18446744073709551615");
  CHECK(paced->host_paced());
  CHECK_FALSE(make_order("seed:18446744073709551615")->host_paced());
  constexpr size_t kChoices = 200 * kPacedDepartureOneIn;
  const auto picks = draws(*paced, 1, kChoices, 1000);
  const auto departures =
      static_cast<size_t>(std::count_if(picks.begin(), picks.end(), [](uint32_t p) { return p; }));
  CHECK(departures > 140);
  CHECK(departures < 260);
  CHECK(std::set<uint32_t>(picks.begin(), picks.end()).size() > departures / 2);
  CHECK(draws(*paced, 1, kChoices, 1000) == picks);
  CHECK(draws(*paced, 2, kChoices, 1000) != picks);
}

TEST_CASE("a script picks what it names and 0 elsewhere") {
  const auto order = make_order("script:41/3.2-17.1;60/0.1");
  CHECK_FALSE(order->host_paced());
  std::vector<uint32_t> expected(20, 0);
  CHECK(draws(*order, 40, 20, 3) == expected);
  expected[3] = 2;
  expected[17] = 1;
  CHECK(draws(*order, 41, 20, 3) == expected);
  CHECK(draws(*order, 41, 20, 3) == expected);
  CHECK(draws(*order, 60, 2, 3) == std::vector<uint32_t>{1, 0});
}

TEST_CASE("a script that does not fit says where") {
  const auto order = make_order("script:41/3.5");
  order->begin_step(41);
  for (int i = 0; i < 3; ++i) CHECK(order->choose(2) == 0);
  const Error error = error_of([&] { order->choose(2); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(error.message() == "script no longer fits: step 41 choice 3 picks 5 of 2 ready");
}

TEST_CASE("text that is no order is refused with the grammar") {
  for (const std::string text : {"", "lifo", "FIFO", "fifo ", "seed", "seed:", "seed:x", "seed:-1",
                                 "seed:1 ", "seed:0x1", "paced:", "paced:1.5", "seed:+1"}) {
    CAPTURE(text);
    const Error error = order_error(text);
    CHECK(error.code() == ErrorCode::usage);
    CHECK(error.message().find("fifo, seed:N, paced:N, pct:N,D, before:") != std::string::npos);
  }
  CHECK(order_error("seed:18446744073709551616").message().find("below 2^64") != std::string::npos);
  CHECK(order_error(std::string(100000, 'x')).message().size() < 400);
}

TEST_CASE("text that is no script is refused with its byte") {
  struct Case {
    const char *text, *message, *context;
  };
  for (const Case& c :
       std::vector<Case>{{"x", "expected a number, the step", "byte 0"},
                         {"41", "expected '/'", "byte 2"},
                         {"41/", "expected a number, the choice point", "byte 3"},
                         {"41/3", "expected '.'", "byte 4"},
                         {"41/3.", "expected a number, the pick", "byte 5"},
                         {"41/3.2-", "expected a number, the choice point", "byte 7"},
                         {"41/3.2;", "expected a number, the step", "byte 7"},
                         {"41/3.2 ", "expected ';', '-' or the end", "byte 6"},
                         {"41/3.2-3.1", "the choice points of a step must ascend", "byte 8"},
                         {"41/3.2;41/4.1", "steps must ascend", "byte 9"},
                         {"41/3.2;7/4.1", "steps must ascend", "byte 8"},
                         {"41/4294967296.1", "choice point is too large", "byte 3"},
                         {"41/1.4294967296", "pick is too large", "byte 5"},
                         {"18446744073709551616/1.1", "step is too large", "byte 0"},
                         {"-1/1.1", "expected a number, the step", "byte 0"}}) {
    CAPTURE(c.text);
    const Error error = order_error(std::string("script:") + c.text);
    CHECK(error.code() == ErrorCode::usage);
    CHECK(error.message().starts_with(c.message));
    CHECK(error.context() == std::string(c.context) + " of the script");
  }
}

TEST_CASE("a script above the size limit is refused before it is read") {
  const Error error = order_error("script:" + std::string(kMaxScriptBytes + 1, '1'));
  CHECK(error.code() == ErrorCode::limit);
}

TEST_CASE("scripts are values that print as they are read") {
  const std::string text = "41/3.2-17.1;60/0.1;18446744073709551615/4294967295.4294967295";
  Script script = parse_script(text);
  REQUIRE(script.steps.size() == 3);
  CHECK(script.steps.at(41) == std::vector<ScriptPick>{{3, 2}, {17, 1}});
  CHECK(to_text(script) == text);
  script.steps.erase(60);
  script.steps.at(41).pop_back();
  CHECK(to_text(script) == "41/3.2;18446744073709551615/4294967295.4294967295");
  script.steps.at(41).clear();
  CHECK(to_text(script) == "18446744073709551615/4294967295.4294967295");

  CHECK(parse_script("").steps.empty());
  CHECK(to_text(Script{}).empty());
  CHECK(parse_script("5/0.0-1.2;6/3.0") == parse_script("5/1.2"));
  CHECK(parse_departures("3.2-17.1") == std::vector<ScriptPick>{{3, 2}, {17, 1}});
  CHECK(parse_departures("").empty());
  CHECK(error_of([] { parse_departures("3.2;"); }).code() == ErrorCode::usage);
  CHECK(script_entry(41, "3.2-17.1") == "41/3.2-17.1");
  CHECK(script_entry(41, "").empty());
}

TEST_CASE("random scripts survive printing and reading") {
  RandomSequence random(11);
  for (int round = 0; round < 200; ++round) {
    Script script;
    for (StepIndex step = random.below(9); step < 60; step += 1 + random.below(20)) {
      auto& picks = script.steps[step];
      for (uint32_t choice = 0; choice < 40;
           choice += 1 + static_cast<uint32_t>(random.below(30))) {
        picks.emplace_back(choice, 1 + static_cast<uint32_t>(random.below(7)));
      }
    }
    REQUIRE(parse_script(to_text(script)) == script);
  }
}

TEST_CASE("a recording order writes down the departures of the current step") {
  const auto inner = make_order("script:41/3.2-17.1;60/0.1");
  RecordingOrder order(*inner);
  CHECK_FALSE(order.host_paced());
  draws(order, 41, 20, 3);
  CHECK(order.departures() == "3.2-17.1");
  CHECK(order.choices() == 20);
  draws(order, 42, 5, 3);
  CHECK(order.departures().empty());
  CHECK(order.choices() == 5);
  draws(order, 60, 1, 2);
  CHECK(order.departures() == "0.1");
  const auto paced = make_order("paced:1");
  CHECK(RecordingOrder(*paced).host_paced());
}
