// engine/decoder/defect_transforms.h - the changes to a program behind the names of defects.h.
#pragma once
#include "engine/model/model.h"
#include "engine/plan/batch.h"
#include "traces/program.h"

namespace redecode::defect {

// Order: an edge or a wait is missing. Programs of one stream stay as they are, but for the last.
void dropped_join(Program& program, const Batch& batch, const Model& model);
void dropped_fork(Program& program, const Batch& batch, const Model& model);
void rerecorded_event(Program& program, const Batch& batch, const Model& model);
void late_kv_handover(Program& program, const Batch& batch, const Model& model);
void missing_pdl_wait(Program& program, const Batch& batch, const Model& model);

// Memory: a block goes back to the pool, or is shared, too early.
void early_free(Program& program, const Batch& batch, const Model& model);
void block_freed_in_flight(Program& program, const Batch& batch, const Model& model);
void moved_workspace(Program& program, const Batch& batch, const Model& model);
void overlapping_graphs(Program& program, const Batch& batch, const Model& model);
void unwritten_scratch(Program& program, const Batch& batch, const Model& model);

// Capture: a value of the step becomes an argument.
void baked_position(Program& program, const Batch& batch, const Model& model);
void baked_branch(Program& program, const Batch& batch, const Model& model);
void frozen_sampler_offset(Program& program, const Batch& batch, const Model& model);

// Arithmetic: ties of the top-k are broken by how many rows run beside.
void racy_topk_ties(Program& program, const Batch& batch, const Model& model);

// Of the input upload: the host writes the staging buffer again while the copy may still read it.
void reused_pinned(Program& inputs);

}  // namespace redecode::defect
