#include "engine/checks/page_size.h"

#include <string>

#include "traces/thousands.h"

namespace redecode {
namespace {

// The paged operand that comes nearest to `stride`; null where one has it.
const Region* mismatched(const Program& program, const Command& c, uint64_t stride) {
  const Region* nearest = nullptr;
  uint64_t least = UINT64_MAX;
  for (const Region& r : program.operands_of(c)) {
    if (!r.buffer.is_persistent()) continue;
    const uint64_t page = (*program.persistents)[r.buffer.index()].page_bytes;
    if (page == stride) return nullptr;
    const uint64_t distance = page > stride ? page - stride : stride - page;
    if (page == 0 || distance >= least) continue;
    least = distance;
    nearest = &r;
  }
  return nearest;
}

}  // namespace

void check_page_sizes(StepIndex step, const Program& program, std::vector<Finding>& out) {
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    const Command& c = program.commands[i];
    for (const Arg& arg : program.args_of(c)) {
      if (arg.kind != ArgKind::page_stride) continue;
      const auto stride = static_cast<uint64_t>(arg.value);
      const Region* pages = mismatched(program, c, stride);
      if (pages == nullptr) continue;
      Finding f;
      f.kind = FindingKind::foreign;
      f.check = "page-size";
      f.step = step;
      f.layer = c.layer;
      f.first = {std::string((*program.names)[c.name]),
                 std::string(program.name_of(pages->buffer)),
                 c.layer,
                 c.stream,
                 i,
                 step,
                 Access::update,
                 0};
      const uint64_t page = (*program.persistents)[pages->buffer.index()].page_bytes;
      f.size_bytes = page;
      f.advice = "It steps by " + with_thousands(stride) + " bytes from page to page, `" +
                 f.first.buffer + "` has pages of " + with_thousands(page) +
                 ": take both from one function of the key type.";
      out.push_back(std::move(f));
    }
  }
}

}  // namespace redecode
