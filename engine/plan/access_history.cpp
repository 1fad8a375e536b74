#include "engine/plan/access_history.h"

namespace redecode {

void AccessHistory::allocate(uint64_t begin, uint64_t end) {
  ranges_.visit(begin, end, [](uint64_t, uint64_t, State& state) {
    state.content = Content::undefined;
    state.writer = {};
  });
}

void AccessHistory::settle(State& state, const Clock& settled) const {
  std::erase_if(state.touches, [&](const Touch& t) { return settled.covers(t.epoch); });
  if (pairs_ == RacePairs::all) return;
  // Which command wrote a persistent buffer matters to races only: without it neighbours can merge.
  const Touch& writer = state.writer;
  if (state.content == Content::written && is_persistent_owner(writer.owner) &&
      writer.epoch.time != 0 && settled.covers(writer.epoch)) {
    Touch plain;
    plain.owner = writer.owner;
    plain.buffer = writer.buffer;
    plain.buffer_begin = writer.buffer_begin;
    plain.access = Access::write;
    plain.version = writer.version;
    state.writer = plain;
  }
}

// A stated version decides; without one, the content must be the reader's own buffer's.
void AccessHistory::judge(const State& state, const Touch& touch, const Judgement& judgement,
                          uint64_t begin, uint64_t end, std::vector<BadContent>& out) {
  if (state.content == Content::written) {
    const bool own = state.writer.owner == touch.owner;
    const bool shared = is_persistent_owner(touch.owner) && is_persistent_owner(state.writer.owner);
    const bool good = touch.version != 0 ? touch.version == state.writer.version : own || shared;
    if (!good) out.push_back({true, state.writer, touch, begin, end});
  } else if (state.content == Content::undefined || !judgement.initially_written) {
    out.push_back({false, {}, touch, begin, end});
  } else if (touch.version != 0 && touch.version != judgement.initial_version) {
    Touch nobody;
    nobody.owner = touch.owner;
    nobody.buffer = touch.buffer;
    nobody.buffer_begin = touch.buffer_begin;
    nobody.access = Access::write;
    nobody.version = judgement.initial_version;
    out.push_back({true, nobody, touch, begin, end});
  }
}

void AccessHistory::touch(const Touch& touch, const Clock& clock, const Clock& settled,
                          uint64_t begin, uint64_t end, Judgement judgement,
                          std::vector<Conflict>& conflicts, std::vector<BadContent>& bad_contents) {
  const bool is_write = writes(touch.access);
  const bool judged = judgement.judge_content && reads(touch.access);
  ranges_.visit(begin, end, [&](uint64_t from, uint64_t to, State& state) {
    settle(state, settled);
    bool racing = false;
    std::erase_if(state.touches, [&](const Touch& earlier) {
      const bool ordered = clock.covers(earlier.epoch);
      if (!ordered && (is_write || writes(earlier.access))) {
        racing = true;
        conflicts.push_back({earlier, touch, from, to});
      }
      return pairs_ == RacePairs::latest && ordered && (is_write || !writes(earlier.access));
    });
    if (judged && !racing) judge(state, touch, judgement, from, to, bad_contents);
    state.touches.push_back(touch);
    if (!is_write) return;
    const bool defines = touch.access != Access::scratch;
    state.content = defines ? Content::written : Content::undefined;
    state.writer = defines ? touch : Touch{};
  });
}

}  // namespace redecode
