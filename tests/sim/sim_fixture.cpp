#include "tests/sim/sim_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/device/sim/op.h"

namespace redecode::test {
namespace {

void axpy_body(const Launch& launch) {
  const float* const x = launch.at<const float>(0);
  float* const y = launch.at<float>(1);
  const auto a = static_cast<float>(launch.arg(0)) / 256.0f;
  for (int i = 0; i < 4; ++i) y[i] += a * x[i];
}

void mix_body(const Launch& launch) {
  const uint64_t x = *launch.at<const uint64_t>(0);
  uint64_t& y = *launch.at<uint64_t>(1);
  y = y * 31 + x * 7 + static_cast<uint64_t>(launch.arg(0));
}

void set_body(const Launch& launch) {
  *launch.at<uint64_t>(0) = static_cast<uint64_t>(launch.arg(0));
}

void touch_body(const Launch&) {}

}  // namespace

TestKernels::TestKernels() {
  axpy = table.add({"axpy", 2, 1, axpy_body});
  mix = table.add({"mix", 2, 1, mix_body});
  set = table.add({"set", 1, 1, set_body});
  touch = table.add({"touch", 0, 0, touch_body});
}

SimFixture::SimFixture(SimOptions options) : device(kernels.table, exec, options) {
  std::byte* const base = device.reserve(kBuffers * kBufferBytes);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    Binding binding;
    binding.address = base + i * kBufferBytes;
    binding.size_bytes = kBufferBytes;
    persistents.push_back(binding);
    binding.block = i;
    binding.place = {0, i * kBufferBytes, kBufferBytes};
    bindings.transients.push_back(binding);
  }
  bindings.persistents = &persistents;
  clear_buffers();
}

void SimFixture::clear_buffers() {
  const std::vector<std::byte> zeroes(kBufferBytes);
  for (const Binding& binding : persistents) device.write(binding.address, zeroes);
}

std::vector<uint64_t> SimFixture::values() const {
  std::vector<uint64_t> values;
  for (uint32_t i = 0; i < kBuffers; ++i) values.push_back(value<uint64_t>(i));
  return values;
}

ProgramBuilder::ProgramBuilder(const TestKernels& kernels, uint32_t event_count)
    : kernels_(kernels) {
  program.event_count = event_count;
  program.stream_count = kMaxStreams;
  for (uint32_t i = 0; i < SimFixture::kBuffers; ++i) {
    TransientBuffer transient;
    transient.size_bytes = SimFixture::kBufferBytes;
    program.transients.push_back(transient);
  }
}

Command& ProgramBuilder::add(CommandKind kind, StreamId stream) {
  Command c;
  c.kind = kind;
  c.stream = stream;
  c.first_region = static_cast<uint32_t>(program.regions.size());
  c.first_arg = static_cast<uint32_t>(program.args.size());
  program.commands.push_back(c);
  return program.commands.back();
}

void ProgramBuilder::operand(Command& c, uint32_t buffer, Access access) {
  Region region;
  region.buffer = BufferId::persistent(buffer);
  region.access = access;
  region.size_bytes = SimFixture::kBufferBytes;
  program.regions.push_back(region);
  ++c.region_count;
}

void ProgramBuilder::arg(Command& c, int64_t value) {
  program.args.push_back({value, ArgKind::shape});
  ++c.arg_count;
}

ProgramBuilder& ProgramBuilder::touch(StreamId stream) {
  add(CommandKind::launch, stream).kernel = kernels_.touch;
  return *this;
}

ProgramBuilder& ProgramBuilder::set(StreamId stream, uint32_t to, int64_t value) {
  Command& c = add(CommandKind::launch, stream);
  c.kernel = kernels_.set;
  operand(c, to, Access::write);
  arg(c, value);
  return *this;
}

ProgramBuilder& ProgramBuilder::mix(StreamId stream, uint32_t from, uint32_t to, int64_t value) {
  Command& c = add(CommandKind::launch, stream);
  c.kernel = kernels_.mix;
  operand(c, from, Access::read);
  operand(c, to, Access::update);
  arg(c, value);
  return *this;
}

ProgramBuilder& ProgramBuilder::axpy(StreamId stream, float a, uint32_t from, uint32_t to) {
  Command& c = add(CommandKind::launch, stream);
  c.kernel = kernels_.axpy;
  operand(c, from, Access::read);
  operand(c, to, Access::update);
  arg(c, static_cast<int64_t>(a * 256.0f));
  return *this;
}

ProgramBuilder& ProgramBuilder::copy(StreamId stream, uint32_t from, uint32_t to) {
  Command& c = add(CommandKind::copy, stream);
  operand(c, from, Access::read);
  operand(c, to, Access::write);
  return *this;
}

ProgramBuilder& ProgramBuilder::fill(StreamId stream, uint32_t to, int64_t byte) {
  Command& c = add(CommandKind::fill, stream);
  operand(c, to, Access::write);
  arg(c, byte);
  return *this;
}

ProgramBuilder& ProgramBuilder::host_set(uint32_t to, int64_t value) {
  Command& c = add(CommandKind::host, kHost);
  c.kernel = kernels_.set;
  operand(c, to, Access::write);
  arg(c, value);
  return *this;
}

ProgramBuilder& ProgramBuilder::record(StreamId stream, EventId event) {
  add(CommandKind::record, stream).event = event;
  return *this;
}

ProgramBuilder& ProgramBuilder::wait(StreamId stream, EventId event) {
  add(CommandKind::wait, stream).event = event;
  return *this;
}

ProgramBuilder& ProgramBuilder::sync(StreamId stream) {
  add(CommandKind::sync, stream);
  return *this;
}

ProgramBuilder& ProgramBuilder::allocate(StreamId stream, uint32_t transient) {
  program.transients[transient].stream = stream;
  add(CommandKind::allocate, stream).buffer = BufferId::transient(transient);
  return *this;
}

ProgramBuilder& ProgramBuilder::free(uint32_t transient) {
  add(CommandKind::free, kHost).buffer = BufferId::transient(transient);
  return *this;
}

ProgramBuilder& ProgramBuilder::record_stream(StreamId stream, uint32_t transient) {
  add(CommandKind::record_stream, stream).buffer = BufferId::transient(transient);
  return *this;
}

void Log::ran(const Program& ran_program, const Bindings&, uint32_t command) {
  commands.push_back(command);
  program = &ran_program;
}

bool ends_with_bug(void (*body)()) {
  constexpr int kBugStatus = 70;  // traces/check.cpp
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    body();
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == kBugStatus;
}

std::vector<uint32_t> ops_of(const Program& program) {
  std::vector<uint32_t> ops;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (is_stream_op(program.commands[i].kind)) ops.push_back(i);
  }
  return ops;
}

}  // namespace redecode::test
