// engine/plan/clock.h - Clock: a vector clock over every actor that touches memory.
//
// Actors: the streams in eager order, the host, and the streams inside a launched graph. Graph
// nodes are actors apart from the eager stream of the same number, because a launch does not follow
// what that stream did. All graph launches follow each other on stream 0, so they share one set of
// actors. What a PDL-launched kernel does before its dependency wait is the act of yet another
// actor, taken in turn from kMaxPrologues: its stream's later work follows it, but it does not
// follow the kernel before it. Of more such acts in flight at once, the oldest counts as done.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "traces/program.h"

namespace redecode {

using ActorId = uint8_t;
inline constexpr ActorId kHostActor = kMaxStreams;
inline constexpr ActorId kFirstGraphActor = kMaxStreams + 1;
inline constexpr uint32_t kMaxPrologues = 16;
inline constexpr ActorId kFirstPrologueActor = 2 * kMaxStreams + 1;  // of eager streams
inline constexpr ActorId kFirstGraphPrologueActor = kFirstPrologueActor + kMaxPrologues;
inline constexpr uint32_t kActorCount = kFirstGraphPrologueActor + kMaxPrologues;
constexpr bool is_node_actor(ActorId actor) {
  return (actor >= kFirstGraphActor && actor < kFirstPrologueActor) ||
         actor >= kFirstGraphPrologueActor;
}

// An act of an actor: time counts the actor's acts from 1.
struct Epoch {
  ActorId actor = 0;
  uint64_t time = 0;
  bool operator==(const Epoch&) const = default;
};

struct Clock {
  std::array<uint64_t, kActorCount> at{};

  void join(const Clock& other) {
    for (uint32_t i = 0; i < kActorCount; ++i) at[i] = std::max(at[i], other.at[i]);
  }
  // True when the act at `epoch` happened before whatever holds this clock.
  bool covers(const Epoch& epoch) const { return at[epoch.actor] >= epoch.time; }
  bool operator==(const Clock&) const = default;
};

}  // namespace redecode
