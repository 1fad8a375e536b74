// engine/decoder/lowering.h - lower_batch: a batch to its program under a mode, defects included.
//
// The one way in which decoding and checking lower, so that what is checked is what runs.
#pragma once
#include "engine/decoder/defects.h"
#include "engine/model/model.h"
#include "engine/plan/batch.h"
#include "traces/mode.h"
#include "traces/program.h"

namespace redecode {

// `list_touched` lists exact KV ranges, for checks and probes. Pure.
Program lower_batch(const Model& model, const Mode& mode, const DefectSet& defects,
                    const Batch& batch, bool list_touched);

}  // namespace redecode
