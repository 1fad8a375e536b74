#include "engine/decoder/decoder.h"

#include <string>
#include <utility>

#include "engine/decoder/lowering.h"
#include "engine/decoder/probe.h"
#include "engine/kernels/sample.h"
#include "engine/model/factory.h"
#include "traces/check.h"
#include "traces/error.h"

namespace redecode {

Decoder::Decoder(const Model& model, Device& device, const DecoderOptions& options)
    : model_(model),
      device_(device),
      mode_(options.mode),
      inspect_(options.inspect),
      summarize_(options.summarize),
      defects_(options.mode.inject, model),
      order_(make_order(options.mode.order)),
      pool_(device),
      builder_(model.settings(), defects_.pad()),
      inspector_(*model.persistents()) {
  load_weights();
  inspector_.expect_reductions(lower(builder_.dummy(1), false));
  if (mode_.capture == CaptureMode::graph) {
    graphs_ = std::make_unique<GraphCache>(device_, pool_, persistents_);
    const auto fifo = make_order("fifo");
    graphs_->capture(model_.settings().buckets, *fifo, [&](uint32_t bucket) {
      batch_ = builder_.dummy(bucket);
      upload_inputs(*fifo);
      return lower(batch_, false);
    });
  }
}

Decoder::~Decoder() {
  graphs_.reset();
  for (const auto& p : persistents_) device_.release(p.address);
}

void Decoder::load_weights() {
  if (model_.weight_bytes() > kMaxComputedWeightBytes)
    throw Error(ErrorCode::usage,
                "this model is for checking only: its weights take " +
                    std::to_string(model_.weight_bytes() >> 30) + " GiB",
                "model '" + model_.identity().spec + "'");
  for (const auto& p : *model_.persistents()) {
    std::byte* address = device_.reserve(p.size_bytes);
    if (address == nullptr)
      throw Error(ErrorCode::environment, "no memory for " + std::to_string(p.size_bytes) +
                                              " bytes of `" + (*model_.names()).names[p.name] +
                                              "`");
    Binding binding;
    binding.address = address;
    binding.size_bytes = p.size_bytes;
    persistents_.push_back(binding);
  }
  model_.each_weight([&](BufferId id, std::span<const std::byte> bytes) {
    device_.write(persistents_[id.index()].address, bytes);
    weights_digest_ = combine(weights_digest_, digest_bytes(bytes.data(), bytes.size()));
  });
}

void Decoder::set_order(std::string_view order) {
  order_ = make_order(order);
  mode_.order = std::string(order);
}

void Decoder::set_probe(Probe probe) { mode_.probe = probe; }

Program Decoder::lower(const Batch& batch, bool list_touched) const {
  return lower_batch(model_, mode_, defects_, batch, list_touched);
}

void Decoder::restore(const Step& step) {
  tables_.apply(step, model_.inputs().table_stride);
  batch_ = builder_.build(step, tables_);
  if (batch_.row_count() == 0) return;
  const auto fifo = make_order("fifo");
  upload_inputs(*fifo);
  LowerOptions options;
  options.page_type = model_.index_key();
  options.topk = mode_.topk;
  program_ = model_.lower(batch_, options);
  lowered_shape_ = {};
  const Bindings bindings = redecode::bind(program_, pool_, kOrdinaryPool, persistents_);
  device_.submit(program_, bindings, *fifo, nullptr);
  device_.sync(*fifo, nullptr);
  release(bindings, pool_);
}

bool Decoder::prepare(Step& step) {
  if (mode_.feedback == Feedback::own) use_own_tokens(step);
  tables_.apply(step, model_.inputs().table_stride);
  batch_ = builder_.build(step, tables_);
  return batch_.row_count() != 0;
}

StepOutput Decoder::run(const Step& recorded) {
  Step step = recorded;
  if (!prepare(step)) {
    StepOutput nothing;
    nothing.step = step.index;
    return nothing;
  }
  StepOutput output = execute(step);
  if (mode_.feedback == Feedback::own) remember_own_tokens(step, output);
  return output;
}

void Decoder::stage(const Step& step) {
  staged_ = step;
  saved_.clear();
  if (!prepare(staged_)) return;
  program_ = lower(batch_, true);
  lowered_shape_ = {};
  save_touched();
}

void Decoder::save_touched() {
  const auto save = [&](const Region& r) {
    if (!r.buffer.is_persistent() || !writes(r.access)) return;
    Saved saved;
    saved.address = persistents_[r.buffer.index()].address + r.offset_bytes;
    saved.bytes.resize(r.size_bytes);
    device_.read(saved.address, saved.bytes);
    saved_.push_back(std::move(saved));
  };
  for (const Region& r : program_.regions) save(r);
  for (const Region& r : program_.touched) save(r);
}

StepOutput Decoder::run_staged() {
  for (const auto& saved : saved_) device_.write(saved.address, saved.bytes);
  return execute(staged_);
}

StepOutput Decoder::execute(const Step& step) {
  const CapturedGraph* captured =
      graphs_ != nullptr && step.phase == Phase::decode ? graphs_->find(step.bucket) : nullptr;
  last_was_graph_ = captured != nullptr;
  const bool watched = inspect_ || mode_.probe != Probe::none;
  if (captured == nullptr || watched) lower_step(watched);
  OpProber prober(program_, batch_, mode_.probe);
  Observer* observer = mode_.probe == Probe::none ? nullptr : &prober;
  RecordingOrder order(*order_);
  order.begin_step(step.index);
  if (canary_ != nullptr) canary_->arm(device_);
  upload_inputs(order);
  if (captured != nullptr)
    run_graph(*captured, order, observer);
  else
    run_eager(order, observer);
  StepOutput output = collect(step);
  order.end_step();
  if (canary_ != nullptr) check_canary(step.index);
  last_ready_digest_ = order.ready_digest();
  output.order = order.departures();
  output.ops = prober.take();
  return output;
}

void Decoder::set_canary(bool canary) {
  canary_ = canary ? std::make_unique<PageCanary>(*model_.persistents(), persistents_) : nullptr;
}

void Decoder::check_canary(StepIndex step) {
  const Program clean = lower_batch(model_, mode_, DefectSet({}, model_), batch_, true);
  std::vector<Finding> strays;
  canary_->check(step, device_, clean, lower(batch_, true), tables_, strays);
  inspector_.add(std::move(strays));
}

void Decoder::lower_step(bool watched) {
  const LoweredShape shape{batch_.row_count(), batch_.output_count()};
  // A defect may put values of the step into the program.
  const bool follows_from_shape = !watched && mode_.inject.empty();
  program_reused_ = follows_from_shape && lowered_shape_ == shape;
  if (program_reused_) return;
  bindings_hold_ = false;
  program_ = lower(batch_, watched);
  lowered_shape_ = follows_from_shape ? shape : LoweredShape{};
}

void Decoder::run_eager(Order& order, Observer* observer) {
  last_bindings_ = &bindings_;
  if (bindings_hold_) {
    device_.submit(program_, bindings_, order, observer);
    device_.sync(order, observer);
    return;
  }
  const Digest layout = program_reused_ ? pool_.layout_digest() : 0;
  bindings_ = redecode::bind(program_, pool_, kOrdinaryPool, persistents_);
  device_.submit(program_, bindings_, order, observer);
  device_.sync(order, observer);
  release(bindings_, pool_);
  pool_.reclaim(UINT32_MAX);
  // From the same layout the same program is always bound to the same places.
  bindings_hold_ = program_reused_ && pool_.layout_digest() == layout;
  if (inspect_)
    inspector_.add_step(batch_.step, inputs_program_, program_, nullptr, bindings_, tables_);
}

void Decoder::run_graph(const CapturedGraph& captured, Order& order, Observer* observer) {
  last_bindings_ = &captured.bindings;
  device_.launch(captured.graph, order, observer);
  device_.sync(order, observer);
  if (inspect_)
    inspector_.add_step(batch_.step, inputs_program_, program_, &captured.program,
                        captured.bindings, tables_);
}

void Decoder::upload_inputs(Order& order) {
  const InputLayout& layout = model_.inputs();
  staging_.resize(layout.upload_bytes(batch_.row_count()));
  layout.write(batch_, staging_);
  device_.write(persistents_[model_.staging_buffer().index()].address, staging_);
  if (inputs_rows_ != batch_.row_count()) {
    inputs_program_ = model_.lower_inputs(batch_);
    defects_.apply_to_inputs(inputs_program_);
  }
  inputs_rows_ = batch_.row_count();
  input_bindings_.persistents = &persistents_;
  device_.submit(inputs_program_, input_bindings_, order, nullptr);
  device_.sync(order, nullptr);
}

StepOutput Decoder::collect(const Step& step) const {
  StepOutput output;
  output.step = step.index;
  const uint32_t vocab = model_.identity().vocab;
  const std::byte* logits = persistents_[model_.logits_buffer().index()].address;
  const std::byte* tokens = persistents_[model_.tokens_buffer().index()].address;
  const bool read_logits = summarize_ || mode_.full_logits;
  std::vector<float> row_logits(read_logits ? vocab : 0);
  output.rows.reserve(batch_.output_count());
  for (uint32_t i = 0; i < batch_.output_count(); ++i) {
    const uint32_t row = batch_.output_rows[i];
    if (row >= batch_.real_rows || !step.rows[row].wants_output) continue;
    RowOutput out;
    out.row = row;
    out.request = step.rows[row].request;
    out.position = step.rows[row].position;
    device_.read(tokens + size_t{i} * sizeof(int32_t),
                 std::as_writable_bytes(std::span(&out.token, 1)));
    if (read_logits) {
      device_.read(logits + size_t{i} * vocab * sizeof(float),
                   std::as_writable_bytes(std::span(row_logits)));
      auto summary = summarize_logits(row_logits);
      out.logits_digest = summary.digest;
      out.log_sum_exp = summary.log_sum_exp;
      out.top = std::move(summary.top);
      if (mode_.full_logits) out.logits = row_logits;
    }
    output.rows.push_back(std::move(out));
  }
  return output;
}

void Decoder::use_own_tokens(Step& step) const {
  for (Row& row : step.rows) {
    const auto request = own_tokens_.find(row.request);
    if (request == own_tokens_.end()) continue;
    const auto own = request->second.find(row.position);
    if (own != request->second.end()) row.token = own->second;
  }
}

void Decoder::remember_own_tokens(const Step& step, const StepOutput& output) {
  for (const auto& d : step.departures)
    if (d.reason != DepartureReason::preempted) own_tokens_.erase(d.request);
  for (const auto& row : output.rows) own_tokens_[row.request][row.position + 1] = row.token;
}

}  // namespace redecode
