// bench/direct_calls.h - the kernel calls of one program, flat: what a decode step costs when
// nothing but its kernels runs.
//
// A TapDevice passes everything on to the device that it wraps and keeps, on the way, the resolved
// calls of each program: the bodies, operand addresses and arguments of the real step, in program
// order.
#pragma once
#include <cstring>
#include <map>
#include <vector>

#include "engine/device/device.h"
#include "engine/kernels/kernel_table.h"

namespace redecode {

class DirectCalls {
 public:
  DirectCalls() = default;
  DirectCalls(const KernelTable& kernels, const Program& program, const Bindings& bindings) {
    for (const Command& c : program.commands) {
      const bool copy_or_fill = c.kind == CommandKind::copy || c.kind == CommandKind::fill;
      if (c.kind != CommandKind::launch && !copy_or_fill) continue;
      Call call;
      call.kind = c.kind;
      call.body = c.kind == CommandKind::launch ? kernels[c.kernel].body : nullptr;
      call.first_operand = operands_.size();
      call.operand_count = c.region_count;
      call.first_arg = args_.size();
      call.arg_count = c.arg_count;
      for (const Region& region : program.operands_of(c)) {
        operands_.push_back(bindings.of(region.buffer).address + region.offset_bytes);
        call.size_bytes = region.size_bytes;
      }
      for (const Arg& arg : program.args_of(c)) args_.push_back(arg);
      calls_.push_back(call);
    }
  }

  void run(Exec& exec) const {
    for (const Call& call : calls_) {
      std::byte* const* operands = operands_.data() + call.first_operand;
      const Arg* args = args_.data() + call.first_arg;
      if (call.body != nullptr) {
        call.body(Launch{{operands, call.operand_count}, {args, call.arg_count}, exec});
      } else if (call.kind == CommandKind::copy) {
        std::memmove(operands[1], operands[0], call.size_bytes);
      } else {
        std::memset(operands[0], static_cast<int>(args[0].value & 0xff), call.size_bytes);
      }
    }
  }

  size_t size() const { return calls_.size(); }

 private:
  struct Call {
    CommandKind kind = CommandKind::launch;
    KernelBody body = nullptr;
    size_t first_operand = 0, operand_count = 0, first_arg = 0, arg_count = 0;
    uint64_t size_bytes = 0;
  };
  std::vector<Call> calls_;
  std::vector<std::byte*> operands_;
  std::vector<Arg> args_;
};

class TapDevice final : public Device {
 public:
  TapDevice(const KernelTable& kernels, Device& inner) : kernels_(kernels), inner_(inner) {}

  // While on, calls() is what was submitted or launched last. It costs time: off when measuring.
  void keep_calls(bool on) { keep_ = on; }
  const DirectCalls& calls() const { return calls_; }

  std::byte* reserve(uint64_t size_bytes) override { return inner_.reserve(size_bytes); }
  void release(std::byte* base) override { inner_.release(base); }
  void submit(const Program& program, const Bindings& bindings, Order& order,
              Observer* observer) override {
    if (keep_) calls_ = DirectCalls(kernels_, program, bindings);
    inner_.submit(program, bindings, order, observer);
  }
  CaptureResult capture(const Program& program, const Bindings& bindings) override {
    const CaptureResult result = inner_.capture(program, bindings);
    captured_[result.graph] = DirectCalls(kernels_, program, bindings);
    return result;
  }
  void launch(GraphId graph, Order& order, Observer* observer) override {
    if (keep_) calls_ = captured_.at(graph);
    inner_.launch(graph, order, observer);
  }
  GraphStats graph_stats(GraphId graph) const override { return inner_.graph_stats(graph); }
  void destroy(GraphId graph) override { inner_.destroy(graph); }
  void sync(Order& order, Observer* observer) override { inner_.sync(order, observer); }
  void write(std::byte* address, std::span<const std::byte> bytes) override {
    inner_.write(address, bytes);
  }
  void read(const std::byte* address, std::span<std::byte> bytes) const override {
    inner_.read(address, bytes);
  }

 private:
  const KernelTable& kernels_;
  Device& inner_;
  bool keep_ = false;
  DirectCalls calls_;
  std::map<GraphId, DirectCalls> captured_;
};

}  // namespace redecode
