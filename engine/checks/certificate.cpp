#include "engine/checks/certificate.h"

#include <vector>

#include "traces/thousands.h"

namespace redecode {
namespace {

class Words {
 public:
  void add(uint64_t value) { words_.push_back(value); }
  void add(std::string_view text) { words_.push_back(digest_text(text)); }
  Digest digest() const { return digest_span(std::span<const uint64_t>(words_)); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace

void Certifier::add(const Program& program, const ExtentTable& extents, Submission submission) {
  Words words;
  words.add(static_cast<uint64_t>(submission));
  words.add(program.stream_count);
  words.add(program.outside_streams);
  for (const Command& c : program.commands) {
    words.add(static_cast<uint64_t>(c.kind) | uint64_t{c.stream} << 8 | uint64_t{c.layer} << 16 |
              uint64_t{c.event} << 32 | uint64_t{c.before_wait} << 48 |
              uint64_t{c.needs_all_blocks} << 49);
    words.add((*program.names)[c.name]);
    if (c.buffer.valid()) words.add(extents.of(c.buffer).begin);
    for (const auto& ranges : {program.operands_of(c), program.touched_of(c)})
      for (const Region& r : ranges) {
        const Extent& extent = extents.of(r.buffer);
        words.add(extent.begin + r.offset_bytes);
        words.add(r.size_bytes);
        words.add(static_cast<uint64_t>(r.access) | uint64_t{r.version} << 8);
        words.add(extent.generation);
        out_.accesses += r.access != Access::none;
      }
    for (const Arg& arg : program.args_of(c))
      words.add(static_cast<uint64_t>(arg.value) ^ static_cast<uint64_t>(arg.kind) << 56);
  }
  ++out_.programs;
  out_.commands += program.commands.size();
  out_.digest = combine(out_.digest, words.digest());
}

std::string claim_of(const Certificate& c) {
  return "of " + with_thousands(c.accesses) + " accesses by " + with_thousands(c.commands) +
         " commands in " + with_thousands(c.programs) +
         (c.programs == 1 ? " program" : " programs") +
         ": every conflicting pair is ordered, every read is of current content, every address is "
         "owned";
}

}  // namespace redecode
