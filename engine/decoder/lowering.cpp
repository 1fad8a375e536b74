#include "engine/decoder/lowering.h"

namespace redecode {

Program lower_batch(const Model& model, const Mode& mode, const DefectSet& defects,
                    const Batch& batch, bool list_touched) {
  LowerOptions options;
  options.plan = StreamPlan::of_mode(mode.streams);
  options.topk = mode.topk;
  options.page_type = model.index_key();
  options.list_touched = list_touched;
  defects.apply(options);
  Program program = model.lower(batch, options);
  defects.apply(program, batch);
  return program;
}

}  // namespace redecode
