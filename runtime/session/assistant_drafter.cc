#include "runtime/session/assistant_drafter.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {

AssistantDrafter::AssistantDrafter(SessionCore* target, const Sequences* sequences,
                                   const SessionPlan& plan, std::byte* block)
    : target_(*target),
      sequences_(*sequences),
      model_(*target->model.mtp, target, plan, block),
      width_(target->model.spec.hidden),
      capacity_(target->plan.mtp.n_rows),
      rows_(target->memory.As<float>(target->plan.mtp.rows)),
      ids_(target->memory.As<int32_t>(target->plan.mtp.text)) {}

Status AssistantDrafter::Create(SessionCore* target, const Sequences* sequences,
                                const SessionPlan& plan, AssistantDrafter** out, Diag* diag) {
  *out = nullptr;
  std::byte* block = target->memory.At(target->plan.mtp.block);
  auto* drafter = new (PartitionBlock(plan, block).At(plan.session))
      AssistantDrafter(target, sequences, plan, block);
  const Status status = drafter->model_.Load(plan, diag);
  if (status != Status::kOk) {
    drafter->~AssistantDrafter();
    return status;
  }
  *out = drafter;
  return Status::kOk;
}

uint32_t AssistantDrafter::SequenceOf(const int32_t* history) const {
  uint32_t sequence = 0;
  while (sequences_.History(sequence) != history) ++sequence;
  return sequence;
}

void AssistantDrafter::OnRun(Span<const int32_t> before, Span<const int32_t> ids) {
  n_rows_ = Min(ids.size(), capacity_);
  const size_t skipped = ids.size() - n_rows_;
  history_ = before.data();
  first_row_ = before.size() + skipped;
  const Program& program = target_.plan.program;
  const float* rows = target_.memory.As<float>(program.values[program.final_rows].slice);
  std::memcpy(rows_, rows + skipped * width_, n_rows_ * width_ * sizeof(float));
  std::memcpy(ids_, ids.data() + skipped, n_rows_ * sizeof(int32_t));
}

// A row of other tokens would only guess wrong: its own token is compared to skip most of them.
Offer AssistantDrafter::Look(Span<const int32_t> ids, uint32_t most) {
  if (ids.size() < 2 || ids.data() != history_) return {};
  const size_t last = ids.size() - 2;  // position whose row guesses what follows ids
  if (last < first_row_ || last - first_row_ >= n_rows_) return {};
  const int32_t id = ids[last + 1];
  const bool is_token = id >= 0 && static_cast<uint32_t>(id) < target_.plan.program.vocab;
  if (!is_token || ids_[last - first_row_] != ids[last]) return {};
  const uint32_t sequence = SequenceOf(history_);
  const KvCache& cache = sequences_.cache();
  if (cache.length(sequence) != last + 1 || cache.FirstRewindPosition(sequence) > last) return {};
  Offer offer;
  offer.n = most;
  offer.kind = kModelKind;
  offer.guess_ns = guess_time_.Of(1);
  return offer;
}

int32_t AssistantDrafter::Best() {
  const int32_t row = model_.Best();
  const ClustersSpec& clusters = target_.model.mtp->spec.clusters;
  if (clusters.n == 0) return row;
  const auto* ids = reinterpret_cast<const float*>(target_.model.spec.weights[clusters.ids].data);
  const auto vocab = static_cast<float>(target_.plan.program.vocab);
  // The bundle's values are not checked before.
  return ids[row] >= 0 && ids[row] < vocab ? static_cast<int32_t>(ids[row]) : 0;
}

Proposal AssistantDrafter::Propose(Span<const int32_t> ids, Span<int32_t> out) {
  const size_t last = ids.size() - 2;
  const PageTable* tables = sequences_.cache().tables(SequenceOf(history_));
  float* row = rows_ + capacity_ * width_;
  std::memcpy(row, rows_ + (last - first_row_) * width_, width_ * sizeof(float));
  Proposal proposal;
  const uint64_t start = MonotonicNs();
  int32_t id = ids[last + 1];
  while (proposal.n < out.size() &&
         model_.RunBehind(tables, static_cast<uint32_t>(last), id, {row, width_}) == Status::kOk) {
    id = out[proposal.n++] = Best();
    std::memcpy(row, model_.FinalRow(0), width_ * sizeof(float));
  }
  proposal.guesses_ns = MonotonicNs() - start;
  if (proposal.n != 0) guess_time_.Add(proposal.guesses_ns, proposal.n);
  model_.EndCall();
  return proposal;
}

}  // namespace arn
