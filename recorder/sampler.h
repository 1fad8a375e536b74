// recorder/sampler.h - Sampler: which requests and steps of live traffic are recorded.
//
// Grammar, parts joined by ';': "all", "1/16" (of requests, by a hash of their number),
// "requests:ID,ID" (engine ids or numbers), "sessions:N,N", "steps:A..B". A request is kept if any
// of the request parts keeps it; steps outside the window are left out whole.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/output.h"
#include "traces/step.h"

namespace redecode {

class Sampler {
 public:
  // Errors: usage, naming the part.
  explicit Sampler(std::string_view text);

  bool keeps_all() const { return !selects_ && first_ == 0 && last_ == UINT64_MAX; }
  // For the header; empty when all is kept.
  const std::string& text() const { return text_; }

  // The engine's own id of a request number, so that requests can be named by it.
  void name(RequestId request, std::string_view engine_id);

  // Takes out what is not kept and counts it in rows_left_out. False: the step is outside the
  // window.
  bool apply(Step& step);
  // The outputs of a step that apply has seen lately (64 steps): rows of requests that are left out
  // go, the others get their new places. False: the step is outside the window.
  bool apply(StepOutput& output);

 private:
  bool keeps(RequestId request) const;
  bool in_window(StepIndex step) const { return step >= first_ && step <= last_; }
  void read_part(std::string_view part);

  static constexpr size_t kRemembered = 64;
  struct Places {
    StepIndex step = UINT64_MAX;
    std::vector<uint32_t> places;  // new row of each old row; UINT32_MAX: left out
  };

  std::string text_;
  bool selects_ = false;
  uint32_t one_in_ = 0;
  std::set<std::string, std::less<>> names_;
  std::set<SessionId> sessions_;
  StepIndex first_ = 0, last_ = UINT64_MAX;
  std::map<RequestId, bool> kept_;  // of requests that run
  std::set<RequestId> named_;
  std::vector<Places> places_;
};

}  // namespace redecode
