#include "engine/plan/access_history.h"

namespace redecode {

void AccessHistory::allocate(uint64_t begin, uint64_t end) {
  ranges_.visit(begin, end, [](uint64_t, uint64_t, State& state) {
    state.content = Content::undefined;
    state.writer = {};
  });
}

void AccessHistory::settle(State& state, const Clock& settled) {
  std::erase_if(state.touches, [&](const Touch& t) { return settled.covers(t.epoch); });
  // Which command wrote a persistent buffer matters to races only: without it neighbours can merge.
  const Touch& writer = state.writer;
  if (state.content == Content::written && is_persistent_owner(writer.owner) &&
      writer.epoch.time != 0 && settled.covers(writer.epoch)) {
    Touch plain;
    plain.owner = writer.owner;
    plain.buffer = writer.buffer;
    plain.buffer_begin = writer.buffer_begin;
    plain.access = Access::write;
    state.writer = plain;
  }
}

void AccessHistory::touch(const Touch& touch, const Clock& clock, const Clock& settled,
                          uint64_t begin, uint64_t end, Judgement judgement,
                          std::vector<Conflict>& conflicts, std::vector<BadContent>& bad_contents) {
  const bool is_write = writes(touch.access);
  const bool judge = judgement.judge_content && reads(touch.access);
  ranges_.visit(begin, end, [&](uint64_t from, uint64_t to, State& state) {
    settle(state, settled);
    bool racing = false;
    std::erase_if(state.touches, [&](const Touch& earlier) {
      const bool ordered = clock.covers(earlier.epoch);
      if (!ordered && (is_write || writes(earlier.access))) {
        racing = true;
        conflicts.push_back({earlier, touch, from, to});
      }
      return ordered && (is_write || !writes(earlier.access));
    });
    if (judge && !racing) {
      if (state.content == Content::written) {
        const bool own = state.writer.owner == touch.owner;
        const bool shared =
            is_persistent_owner(touch.owner) && is_persistent_owner(state.writer.owner);
        if (!own && !shared) bad_contents.push_back({true, state.writer, touch, from, to});
      } else if (state.content == Content::undefined || !judgement.initially_written) {
        bad_contents.push_back({false, {}, touch, from, to});
      }
    }
    state.touches.push_back(touch);
    if (!is_write) return;
    const bool defines = touch.access != Access::scratch;
    state.content = defines ? Content::written : Content::undefined;
    state.writer = defines ? touch : Touch{};
  });
}

}  // namespace redecode
