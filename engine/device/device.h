// engine/device/device.h - Device: what a program runs on. Streams and events are ids in programs.
//
// One interface, two ways to submit: eager (submit) and graph (capture once, launch often). A
// device adds no ordering of its own: it honours stream order, event edges and host syncs, and no
// more.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/order.h"
#include "engine/memory/bindings.h"
#include "traces/output.h"
#include "traces/program.h"

namespace redecode {

using GraphId = uint32_t;

// Sees each command that touches bytes (launch, copy, fill, host) once, right after it ran;
// commands that only order or allocate are not shown. An op is shown to the observer that it was
// issued with. Must not allocate from the pool, add commands or throw.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void ran(const Program& program, const Bindings& bindings, uint32_t command) = 0;
};

// What breaks the rules of capture, by CUDA's name; see capture_error_name.
enum class CaptureStatus : uint8_t {
  ok,
  unjoined,     // cudaErrorStreamCaptureUnjoined: a side stream was not joined before the end
  isolation,    // cudaErrorStreamCaptureIsolation: dependency on work outside the capture
  unsupported,  // cudaErrorStreamCaptureUnsupported: sync of a capturing stream
  implicit,     // cudaErrorStreamCaptureImplicit: uncaptured work on a stream that must be captured
};
std::string_view capture_error_name(CaptureStatus status);

struct CaptureResult {
  CaptureStatus status = CaptureStatus::ok;
  GraphId graph = 0;
  uint32_t command = 0;  // that broke the rule
  std::string message;   // empty when ok
};

// What a graph came to.
struct GraphStats {
  uint32_t nodes = 0, edges = 0;
};

class Device : public SegmentSource {
 public:
  // Eager: issues every command of the program in order. Work may still be pending on return; a
  // later submit's commands queue behind it, stream by stream. Events are the program's own: a
  // later submit starts with none recorded. A host command runs the body of its kernel at issue.
  // All that the ops need is copied at issue. Only with an observer, which may be null, must
  // observer, program and bindings stay where they are until the next sync of all streams.
  virtual void submit(const Program& program, const Bindings& bindings, Order& order,
                      Observer* observer) = 0;

  // Captures with stream 0 as origin. Runs nothing. Addresses, offsets and args are frozen into
  // nodes; program and bindings are copied. On error nothing of the graph remains.
  virtual CaptureResult capture(const Program& program, const Bindings& bindings) = 0;
  // Launches on stream 0: the graph waits for what stream 0 did before, and stream 0 waits for all
  // of its nodes. An observer, which may be null, must live until the next sync; it is shown the
  // program and bindings as captured. A graph id that is not alive is a bug (CHECK).
  virtual void launch(GraphId graph, Order& order, Observer* observer) = 0;
  virtual GraphStats graph_stats(GraphId graph) const = 0;
  // Pending launches of it still run.
  virtual void destroy(GraphId graph) = 0;

  // Host waits for everything; pending ops run in the order that `order` picks. `observer`, unless
  // null, takes the place of the one that an op was issued with; ops issued without one stay
  // unseen.
  virtual void sync(Order& order, Observer* observer) = 0;

  // Host-side access for inputs and results; the device must be synced (CHECK).
  virtual void write(std::byte* address, std::span<const std::byte> bytes) = 0;
  virtual void read(const std::byte* address, std::span<std::byte> bytes) const = 0;
};

}  // namespace redecode
