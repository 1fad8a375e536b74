// check_frozen of hazards.h: what a captured program holds that this step would need otherwise.
#include <algorithm>
#include <string>

#include "engine/plan/hazards.h"
#include "traces/check.h"

namespace redecode {
namespace {

std::string quoted(std::string_view text) { return '`' + std::string(text) + '`'; }

// The first difference of one command and how many there are.
struct Difference {
  uint32_t count = 0;
  std::string text;
  const Region* operand = nullptr;  // null where it is an argument
  void add(std::string what, const Region* where) {
    if (count++ == 0) {
      text = std::move(what);
      operand = where;
    }
  }
};

void compare_args(const Program& captured, const Program& needed, const Command& was,
                  const Command& now, std::string_view op, Difference& out) {
  const auto old_args = captured.args_of(was), new_args = needed.args_of(now);
  REDECODE_CHECK_OP(old_args.size(), ==, new_args.size());
  for (size_t i = 0; i < old_args.size(); ++i) {
    const bool of_step =
        old_args[i].kind == ArgKind::step_value || new_args[i].kind == ArgKind::step_value;
    if (!of_step || old_args[i].value == new_args[i].value) continue;
    out.add(quoted(op) + " holds " + std::to_string(old_args[i].value) +
                " of capture time as argument " + std::to_string(i) + "; this step needs " +
                std::to_string(new_args[i].value) + ": pass it through memory",
            nullptr);
  }
}

void compare_operands(const Program& captured, const Program& needed, const Command& was,
                      const Command& now, std::string_view op, Difference& out) {
  const auto before = captured.operands_of(was), after = needed.operands_of(now);
  REDECODE_CHECK_OP(before.size(), ==, after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].buffer != after[i].buffer) {
      out.add(quoted(op) + " holds the address of " + quoted(captured.name_of(before[i].buffer)) +
                  " of capture time; this step needs " + quoted(needed.name_of(after[i].buffer)) +
                  ": pass the address through memory, or copy into the captured buffer",
              &before[i]);
    } else if (before[i].offset_bytes != after[i].offset_bytes) {
      out.add(quoted(op) + " holds offset " + std::to_string(before[i].offset_bytes) + " of " +
                  quoted(captured.name_of(before[i].buffer)) +
                  " of capture time; this step needs " + std::to_string(after[i].offset_bytes) +
                  ": pass the offset through memory",
              &before[i]);
    }
  }
}

}  // namespace

void check_frozen(StepIndex step, const Program& captured, const Program& needed,
                  std::vector<Finding>& out) {
  REDECODE_CHECK_OP(captured.commands.size(), ==, needed.commands.size());
  for (size_t i = 0; i < captured.commands.size(); ++i) {
    const Command& was = captured.commands[i];
    const Command& now = needed.commands[i];
    REDECODE_CHECK(was.kind == now.kind && was.stream == now.stream && was.kernel == now.kernel);
    const std::string_view op = (*captured.names)[was.name];
    Difference difference;
    compare_args(captured, needed, was, now, op, difference);
    compare_operands(captured, needed, was, now, op, difference);
    if (difference.count == 0) continue;
    Finding f;
    f.kind = FindingKind::frozen;
    f.step = step;
    f.layer = was.layer;
    f.first.op = op;
    f.first.layer = was.layer;
    f.first.stream = was.stream;
    f.first.command = static_cast<uint32_t>(i);
    f.first.step = step;
    if (const Region* operand = difference.operand; operand != nullptr) {
      f.first.buffer = captured.name_of(operand->buffer);
      f.first.access = operand->access;
      f.offset_bytes = operand->offset_bytes;
      f.size_bytes = operand->size_bytes;
    } else {
      f.first.access = Access::none;
    }
    f.advice = std::move(difference.text);
    if (difference.count > 1)
      f.advice += " (and " + std::to_string(difference.count - 1) + " more of this command)";
    out.push_back(std::move(f));
  }
}

}  // namespace redecode
