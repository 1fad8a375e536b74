// engine/device/sim/sim_device.h - SimDevice: a GPU's ordering rules on the CPU, one op at a time.
//
// Ops run whole, in an order that an Order picks among everything that stream order, event edges,
// graph edges and host syncs leave free; see stream_queues.h and graph.h. Same programs, same order
// string, same bits. Streams are 0 to kMaxStreams - 1 and need no creation.
//
// Eager: submit issues the commands one by one. With a host-paced order, all that is ready runs
// before the next command is issued; otherwise ops queue up until a sync. A `sync` command runs
// picked candidates, of any stream, until its own stream is empty. A host command acts when it is
// issued, whatever is pending. A launched graph is one item of stream 0; with a host-paced order it
// runs at once.
//
// Lifetime: submit copies addresses and arguments, so without an observer the program and the
// bindings may go as soon as it returns. With one, observer, program and bindings must stay where
// they are until the next sync() (they are shown, not copied). Bound memory must stay until then in
// any case.
//
// Errors: when an order throws (a script that does not fit), what has not run stays pending; the
// device can be synced with another order, or destroyed. Cost: tens of nanoseconds an op beside the
// op itself; no allocation in steady state.
#pragma once
#include <memory>

#include "engine/device/device.h"
#include "engine/kernels/exec.h"
#include "engine/kernels/kernel_table.h"

namespace redecode {

// What reserved memory holds before anyone writes it: the same in every run, and no plausible
// value.
inline constexpr std::byte kUnwrittenByte{0xcd};

struct SimOptions {
  // Eager mode: a freed block is filled with 0xff, all of its bytes. The fill takes its place on
  // the stream that owns the block, at the point of the free, as the next owner's writes would: so
  // it never breaks a program that orders its accesses before the free. Blocks whose free
  // record_stream deferred are left alone, for their uses may still run.
  bool poison = false;
};

class SimDevice final : public Device {
 public:
  // Kernels and exec must outlive the device.
  SimDevice(const KernelTable& kernels, Exec& exec, SimOptions options = {});
  ~SimDevice() override;
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;

  // Host memory aligned to 512 B, filled with kUnwrittenByte. Null when the system gives none.
  // Memory not released goes with the device.
  std::byte* reserve(uint64_t size_bytes) override;
  void release(std::byte* base) override;

  void submit(const Program& program, const Bindings& bindings, Order& order,
              Observer* observer) override;
  CaptureResult capture(const Program& program, const Bindings& bindings) override;
  void launch(GraphId graph, Order& order, Observer* observer) override;
  GraphStats graph_stats(GraphId graph) const override;
  void destroy(GraphId graph) override;
  void sync(Order& order, Observer* observer) override;
  void write(std::byte* address, std::span<const std::byte> bytes) override;
  void read(const std::byte* address, std::span<std::byte> bytes) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redecode
