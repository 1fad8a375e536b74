// DeepSeek-V4-Flash's dimensions: lowered, bound and checked without computing a value.
#include <catch2/catch_test_macros.hpp>

#include "engine/decoder/plan_check.h"
#include "tests/engine/rig.h"
#include "traces/error.h"

using namespace redecode;
using namespace redecode::rig;

namespace {

struct Flash {
  explicit Flash(const Mode& mode) {
    const KernelIds ids = add_exact_kernels(kernels);
    SettingsRequest request;
    request.buckets = {8, 64};
    model = make_model("dsv4-flash", default_settings("dsv4-flash", request), mode.index_key, ids);
    checker = std::make_unique<PlanChecker>(kernels, *model, mode);
  }
  KernelTable kernels;
  std::unique_ptr<Model> model;
  std::unique_ptr<PlanChecker> checker;
};

// 64 requests arrive with a page each, half a prompt of 64 rows, then decode steps of all.
std::vector<Step> steps_of(uint32_t page_size) {
  std::vector<Step> steps(3);
  Step& first = steps[0];
  first.phase = Phase::prefill;
  for (RequestId id = 0; id < 64; ++id) {
    first.arrivals.push_back({.request = id, .session = id, .prompt_tokens = 65, .sampling = {}});
    first.page_changes.push_back({.request = id, .index = 0, .page = id + 1});
  }
  for (uint32_t p = 0; p < 64; ++p) first.rows.push_back({0, p, 7, page_size + p, false});
  for (StepIndex i = 1; i < steps.size(); ++i) {
    steps[i].index = i;
    steps[i].phase = Phase::decode;
    steps[i].bucket = 64;
    for (RequestId id = 0; id < 64; ++id) {
      const auto position = static_cast<uint32_t>(63 + i);
      steps[i].rows.push_back({id, position, 5, (id + 1) * page_size + position, true});
    }
  }
  return steps;
}

std::vector<Finding> check(const Mode& mode) {
  Flash flash(mode);
  for (const Step& step : steps_of(flash.model->settings().page_size)) flash.checker->add(step);
  CHECK(flash.checker->largest().rows == 64);
  CHECK(flash.checker->largest().nodes > 1000);
  CHECK(flash.checker->graph_steps() == (mode.capture == CaptureMode::graph ? 2 : 0));
  return flash.checker->inspector().findings();
}

}  // namespace

TEST_CASE("dsv4-flash lowers at 64 rows and is clean in all modes", "[flash]") {
  for (const auto capture : {CaptureMode::eager, CaptureMode::graph}) {
    for (const auto streams : {StreamMode::single, StreamMode::multi}) {
      const Mode mode = mode_of(capture, streams);
      INFO(describe(mode));
      for (const Finding& f : check(mode)) FAIL_CHECK(sentence(f));
    }
  }
}

TEST_CASE("dsv4-flash with defects is checked to the end", "[flash]") {
  for (const char* name : {"early-free", "dropped-join", "dropped-fork", "baked-position"}) {
    Mode mode = mode_of(CaptureMode::graph, StreamMode::multi);
    mode.inject = {name};
    const auto findings = check(mode);
    INFO(name << ": " << findings.size() << " findings");
    for (const Finding& f : findings) CHECK(f.kind == find_defect(name)->found_by);
    // The query of 64 heads is an eighth of `q`: no command of this plan takes its block.
    CHECK(findings.empty() == (std::string_view(name) == "early-free"));
  }
}

TEST_CASE("dsv4-flash is too large to compute, and that is a usage error", "[flash]") {
  RigOptions options;
  options.model = "dsv4-flash";
  options.settings = default_settings("dsv4-flash");
  try {
    Rig rig(options);
    FAIL("computed");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::usage);
  }
}
