#include <algorithm>
#include <map>

#include "traces/edit/cut.h"
#include "traces/edit/same_file.h"
#include "traces/error.h"

namespace redecode {
namespace {

struct Part {
  std::filesystem::path path;
  TraceHeader header;
  StepIndex first = 0;
  bool has_steps = false;
};

Part look_at(const std::filesystem::path& path) {
  Part part{path, {}, 0, false};
  TraceReader reader(path);
  part.header = reader.header();
  TraceRecord record;
  while (!part.has_steps && reader.next(record)) {
    if (!record.step) continue;
    part.first = record.step->index;
    part.has_steps = true;
  }
  return part;
}

void check_same(const Part& first, const Part& other) {
  if (first.header.model == other.header.model && first.header.engine == other.header.engine)
    return;
  throw Error(ErrorCode::incomparable,
              "parts come from different recordings: model or engine settings differ",
              other.path.string());
}

class Merger {
 public:
  Merger(TraceWriter& writer, MergeResult& result) : writer_(writer), result_(result) {}

  void add(const Part& part) {
    TraceReader reader(part.path);
    TraceRecord record;
    bool first_step = true;
    while (reader.next(record)) {
      if (record.step) {
        if (first_step && digests_.empty()) writer_.restore(reader.start());
        first_step = false;
        add(*record.step, part);
      }
      if (record.output && outputs_.try_emplace(record.output->step, true).second)
        writer_.write(*record.output);
      if (record.event) writer_.write(*record.event);
      if (record.exchange) writer_.write(*record.exchange);
    }
  }

 private:
  void add(const Step& step, const Part& part) {
    const Digest digest = digest_step(step);
    if (const auto seen = digests_.find(step.index); seen != digests_.end()) {
      if (seen->second != digest)
        throw Error(ErrorCode::incomparable,
                    "step " + std::to_string(step.index) + " is another one in an earlier part",
                    part.path.string());
      ++result_.overlapping;
      return;
    }
    if (!digests_.empty() && step.index > next_) {
      const Gap gap{.first = next_,
                    .last = step.index - 1,
                    .count = step.index - next_,
                    .bytes = 0,
                    .causes = kGapFileMissing};
      writer_.write(gap);
      result_.gaps.push_back(gap);
    }
    writer_.write(step);
    digests_[step.index] = digest;
    next_ = step.index + 1;
    ++result_.steps;
  }

  TraceWriter& writer_;
  MergeResult& result_;
  std::map<StepIndex, Digest> digests_;
  std::map<StepIndex, bool> outputs_;
  StepIndex next_ = 0;
};

}  // namespace

MergeResult merge(std::span<const std::filesystem::path> paths, const std::filesystem::path& to,
                  bool overwrite) {
  if (paths.empty()) throw Error(ErrorCode::usage, "nothing to merge");
  std::vector<Part> parts;
  for (const auto& path : paths) {
    refuse_same_file(path, to);
    parts.push_back(look_at(path));
    check_same(parts.front(), parts.back());
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.first < b.first; });
  TraceHeader header = parts.front().header;
  header.place = SetPlace();
  MergeResult result;
  TraceWriter writer(to, header, {.layout = StepLayout::columns}, overwrite);
  Merger merger(writer, result);
  for (const Part& part : parts) merger.add(part);
  writer.close();
  return result;
}

}  // namespace redecode
