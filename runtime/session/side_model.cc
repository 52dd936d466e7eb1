#include "runtime/session/side_model.h"

#include "runtime/backends.h"

namespace arn {
namespace {

// Weighs a new time in a mean.
constexpr double kTimeWeight = 0.125;

Memory MemoryOf(const Model& model, const SessionCore& target, const SessionPlan& plan,
                std::byte* block) {
  Memory memory = PartitionBlock(plan, block);
  constexpr auto kKv = static_cast<uint32_t>(Region::kKv);
  if (model.spec.lender != nullptr) memory.region[kKv] = target.memory.region[kKv];
  return memory;
}

}  // namespace

void MeanNs::Add(uint64_t ns, size_t n) {
  const double time = static_cast<double>(ns) / static_cast<double>(n);
  mean_ = mean_ == 0 ? time : mean_ + kTimeWeight * (time - mean_);
}

SideModel::SideModel(const Model& model, SessionCore* target, const SessionPlan& plan,
                     std::byte* block)
    : target_(*target),
      core_(model, plan, MemoryOf(model, *target, plan, block)),
      executor_(&core_),
      sequences_(&core_),
      recompute_(&core_, &executor_, &sequences_),
      runner_(&core_, &executor_, &sequences_, &throttle_, &recompute_) {}

Status SideModel::Load(const SessionPlan& plan, Diag* diag) {
  ARN_TRY(executor_.Load(plan, diag));
  sequences_.Init(FindLogitsOps(*plan.backend));
  runner_.pager().Init(core_.plan, core_.memory, -1);
  return Status::kOk;
}

Status SideModel::Run(Span<const int32_t> ids, Span<const float> features, LogitRows logit_rows) {
  if (target_.cancel.load(std::memory_order_relaxed) != 0) return Status::kCancelled;
  SessionPart part{0, ids};
  part.features = features;
  return runner_.Run({&part, 1}, logit_rows);
}

Status SideModel::RunBehind(const PageTable* tables, uint32_t position, int32_t id,
                            Span<const float> features) {
  const uint32_t turns_by = position + 1;
  RowMask mask;
  mask.positions = &turns_by;
  SequenceRows rows;
  rows.n_rows = 1;
  rows.first_position = position;
  rows.tables = tables;
  RunArgs args;
  args.tokens = {&id, 1};
  args.sequences = {&rows, 1};
  args.features = features;
  args.mask = &mask;
  args.cancel = &target_.cancel;
  executor_.Observe(&args);
  const Status status = executor_.Run(args);
  if (status == Status::kOk) executor_.Count(args);
  return status;
}

int32_t SideModel::Best() {
  const int32_t best = sequences_.logits().best_id();
  if (best != LogitsState::kNoToken) return best;
  return sequences_.At(0).sampler.Sample(sequences_.LogitsOf(0));
}

const float* SideModel::FinalRow(size_t row) const {
  const Value& value = core_.plan.program.values[core_.plan.program.final_rows];
  return core_.memory.As<float>(value.slice) + row * value.width;
}

void SideModel::EndCall() {
  target_.stats.weight_bytes_read += core_.stats.weight_bytes_read;
  target_.stats.kv_bytes_read += core_.stats.kv_bytes_read;
  core_.stats = SessionStats();
  core_.diag.Clear();
}

}  // namespace arn
