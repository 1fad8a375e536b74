// engine/plan/emitter.h - Emitter: the pen with which model code writes a Program.
//
// record and wait between lanes that the plan puts on one stream write nothing: stream order holds
// there.
#pragma once
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "engine/plan/stream_plan.h"
#include "traces/program.h"

namespace redecode {

// A point on a lane, to be waited for.
struct Mark {
  StreamId stream = 0;
  EventId event = 0;
};

class Emitter {
 public:
  Emitter(std::shared_ptr<const NameTable> names,
          std::shared_ptr<const std::vector<PersistentBuffer>> persistents, const StreamPlan& plan);

  void set_layer(uint32_t layer) { layer_ = static_cast<uint16_t>(layer); }
  const StreamPlan& plan() const { return plan_; }

  BufferId allocate(Lane owner, NameId name, uint64_t size_bytes);
  void free(BufferId buffer);
  void record_stream(BufferId buffer, Lane user);

  void launch(Lane lane, KernelId kernel, NameId name, std::initializer_list<Region> operands,
              std::initializer_list<Arg> args, std::span<const Region> touched = {});
  void fill(Lane lane, NameId name, const Region& region, uint8_t byte);
  void copy(Lane lane, NameId name, const Region& from, const Region& to);
  void host(NameId name, std::initializer_list<Region> regions);
  void sync(Lane lane, NameId name);

  // An event is written only if some other stream of the plan could wait for it.
  Mark record(Lane lane, NameId name);
  void wait(Lane lane, const Mark& mark, NameId name);
  // `after` continues only once everything on `before` so far is done.
  void wait_lane(Lane after, Lane before, NameId name);

  // The finished program; the emitter is empty afterwards.
  Program take();

 private:
  Command& append(CommandKind kind, StreamId stream, NameId name);

  Program program_;
  StreamPlan plan_;
  uint16_t layer_ = 0;
};

}  // namespace redecode
