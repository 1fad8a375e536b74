// tests/sim/sim_fixture.h - small programs over small buffers, for tests of the simulated device.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/sim/sim_device.h"
#include "traces/program.h"

namespace redecode::test {

// Kernels of the tests: axpy y[4] += a * x[4] in float; mix y = y * 31 + x * 7 + arg in uint64_t,
// whose result tells the order of its calls; set y = arg; touch does nothing to nothing.
struct TestKernels {
  TestKernels();
  KernelTable table;
  KernelId axpy = 0, mix = 0, set = 0, touch = 0;
};

// A device with buffers of 64 B each, and bindings that give transient i the block i of an arena.
class SimFixture {
 public:
  static constexpr uint32_t kBuffers = 16;
  static constexpr uint64_t kBufferBytes = 64;

  explicit SimFixture(SimOptions options = {});

  // Every buffer starts as zeroes.
  void clear_buffers();
  template <class T>
  T value(uint32_t buffer) const {
    T value{};
    std::byte bytes[sizeof(T)];
    device.read(persistents[buffer].address, bytes);
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  template <class T>
  void set_value(uint32_t buffer, T value) {
    std::byte bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    device.write(persistents[buffer].address, bytes);
  }
  std::vector<uint64_t> values() const;

  TestKernels kernels;
  Exec exec{1, Isa::plain};
  SimDevice device;
  std::vector<Binding> persistents;
  Bindings bindings;
};

// Appends commands to a program over persistent buffers 0 .. kBuffers - 1.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const TestKernels& kernels, uint32_t event_count = 16);

  ProgramBuilder& touch(StreamId stream);
  ProgramBuilder& set(StreamId stream, uint32_t to, int64_t value);
  ProgramBuilder& mix(StreamId stream, uint32_t from, uint32_t to, int64_t value);
  ProgramBuilder& axpy(StreamId stream, float a, uint32_t from, uint32_t to);
  ProgramBuilder& copy(StreamId stream, uint32_t from, uint32_t to);
  ProgramBuilder& fill(StreamId stream, uint32_t to, int64_t byte);
  ProgramBuilder& host_set(uint32_t to, int64_t value);
  ProgramBuilder& record(StreamId stream, EventId event);
  ProgramBuilder& wait(StreamId stream, EventId event);
  ProgramBuilder& sync(StreamId stream);
  // Transients, each bound by SimFixture to the persistent buffer of the same number.
  ProgramBuilder& allocate(StreamId stream, uint32_t transient);
  ProgramBuilder& free(uint32_t transient);
  ProgramBuilder& record_stream(StreamId stream, uint32_t transient);

  uint32_t size() const { return static_cast<uint32_t>(program.commands.size()); }

  Program program;

 private:
  Command& add(CommandKind kind, StreamId stream);
  void operand(Command& c, uint32_t buffer, Access access);
  void arg(Command& c, int64_t value);
  const TestKernels& kernels_;
};

// The commands that ran, in order.
class Log final : public Observer {
 public:
  void ran(const Program& program, const Bindings& bindings, uint32_t command) override;
  std::vector<uint32_t> commands;
  const Program* program = nullptr;  // of the newest call
};

// Runs in a child process, its output dropped; true when that ends as a failed CHECK ends it.
bool ends_with_bug(void (*body)());

// All commands that become ops, in program order.
std::vector<uint32_t> ops_of(const Program& program);

}  // namespace redecode::test
