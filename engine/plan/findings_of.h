// engine/plan/findings_of.h - raw conflicts of one command into findings that people can act on.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/access_history.h"

namespace redecode {

// Strings that outlive the programs they came from; equal strings have equal ids, id 0 is empty.
class OwnNames {
 public:
  OwnNames() { id_of(""); }
  uint32_t id_of(std::string_view text);
  const std::string& operator[](uint32_t id) const { return texts_[id]; }

 private:
  std::map<std::string, uint32_t, std::less<>> ids_;
  std::vector<std::string> texts_;
};

FindingSide side_of(const Touch& touch, const OwnNames& names);

// One finding for each earlier command that `conflicts` (all of one second command) names, in
// program order of the earlier command. Bytes are the union of a pair's overlaps; buffers and
// offset are those of the buffer pair with most bytes. Reorders `conflicts`.
void append_races(std::vector<Conflict>& conflicts, const OwnNames& names,
                  std::vector<Finding>& out);

// One finding an (operand, writing command) of one second command. Sorts `bad_contents` so that
// those of one finding stand together.
bool same_content_finding(const BadContent& a, const BadContent& b);
void append_bad_contents(std::vector<BadContent>& bad_contents, const OwnNames& names,
                         std::vector<Finding>& out);

Finding use_after_free(const Touch& touch, uint64_t offset_bytes, uint64_t size_bytes,
                       uint32_t freeing_command, const OwnNames& names);
// An access of `size_bytes` at `offset_bytes` of a buffer of `buffer_bytes`, which ends before
// that.
Finding leaves_buffer(const Touch& touch, uint64_t offset_bytes, uint64_t size_bytes,
                      uint64_t buffer_bytes, const OwnNames& names);

}  // namespace redecode
