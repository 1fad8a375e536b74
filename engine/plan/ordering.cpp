#include "engine/plan/ordering.h"

#include "traces/check.h"

namespace redecode {

void Ordering::begin_program(Submission submission, uint32_t outside_streams) {
  outside_streams_ = outside_streams;
  for (Event& event : events_) event.recorded = false;
  in_graph_ = submission == Submission::graph;
  launched_ = false;
}

void Ordering::end_program() {
  if (in_graph_ && launched_)
    for (const Clock& node : nodes_) streams_[0].join(node);
  if (in_graph_ && launched_) stream_starts_[0] = streams_[0];
  in_graph_ = false;
  launched_ = false;
}

void Ordering::launch() {
  streams_[0].join(host_);
  nodes_.fill(streams_[0]);
  node_starts_.fill(streams_[0]);
  launch_host_ = host_;
  launched_ = true;
}

Clock& Ordering::issue(StreamId stream) {
  if (stream == kHost) return host_;
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  if (in_graph_) {
    if (!launched_) launch();
    return nodes_[stream];
  }
  if ((outside_streams_ >> stream & 1) == 0) {
    streams_[stream].join(host_);
    stream_starts_[stream].join(host_);
  }
  return streams_[stream];
}

Clock& Ordering::start_of(StreamId stream) {
  return in_graph_ ? node_starts_[stream] : stream_starts_[stream];
}

void Ordering::record(StreamId stream, EventId event) {
  if (event >= events_.size()) events_.resize(event + size_t{1});
  events_[event].clock = issue(stream);
  events_[event].recorded = true;
}

void Ordering::wait(StreamId stream, EventId event) {
  Clock& clock = issue(stream);
  if (event >= events_.size() || !events_[event].recorded) return;
  clock.join(events_[event].clock);
  if (stream != kHost) start_of(stream).join(events_[event].clock);
}

void Ordering::sync(StreamId stream) {
  if (stream == kHost) return;
  REDECODE_CHECK_OP(uint32_t{stream}, <, kMaxStreams);
  host_.join(streams_[stream]);
  if (in_graph_ && launched_ && stream == 0)
    for (const Clock& node : nodes_) host_.join(node);
}

void Ordering::sync_all() {
  REDECODE_CHECK(!in_graph_);
  for (const Clock& stream : streams_) host_.join(stream);
}

Epoch Ordering::advance(StreamId stream) {
  Clock& clock = issue(stream);
  ActorId actor = stream;
  if (stream == kHost) {
    actor = kHostActor;
  } else if (in_graph_) {
    actor = static_cast<ActorId>(kFirstGraphActor + stream);
  }
  return {actor, ++clock.at[actor]};
}

Epoch Ordering::act(StreamId stream) {
  const Epoch epoch = advance(stream);
  if (stream != kHost) start_of(stream) = clock_of(stream);
  return epoch;
}

Epoch Ordering::act_of_kernel(StreamId stream) {
  start_of(stream) = issue(stream);
  return advance(stream);
}

Epoch Ordering::act_before_wait(StreamId stream) {
  Clock& after = issue(stream);
  const auto first = in_graph_ ? kFirstGraphPrologueActor : kFirstPrologueActor;
  const auto actor = static_cast<ActorId>(first + prologues_++ % kMaxPrologues);
  const Epoch epoch{actor, ++prologue_times_[actor - kFirstPrologueActor]};
  prologue_ = start_of(stream);
  prologue_.at[actor] = epoch.time;
  after.at[actor] = epoch.time;
  return epoch;
}

const Clock& Ordering::clock_of(StreamId stream) const {
  if (stream == kHost) return host_;
  return in_graph_ ? nodes_[stream] : streams_[stream];
}

}  // namespace redecode
