#include "runtime/session/draft_model.h"

#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {
namespace {

// Tokens that are read with the first guess as a matter of course: the chosen one, and the last
// guess if all were right. More of them are text that had not been read.
constexpr size_t kUsualTokens = 2;

}  // namespace

DraftModel::DraftModel(SessionCore* target, const SessionPlan& plan, std::byte* block)
    : target_(*target), model_(*target->plan.options.draft, target, plan, block) {}

Status DraftModel::Create(SessionCore* target, const SessionPlan& wanted, DraftModel** out,
                          Diag* diag) {
  *out = nullptr;
  SessionPlan plan;
  SessionObjects objects;
  objects.sequence_bytes = sizeof(Sequence);
  objects.draft_bytes = sizeof(DraftModel);
  ARN_TRY(PlanDraft(target->model, wanted, objects, &plan, diag));
  ARN_TRY(CheckWeights(*wanted.options.draft, diag));
  std::byte* block = target->memory.At(target->plan.draft);
  auto* draft = new (PartitionBlock(plan, block).At(plan.session)) DraftModel(target, plan, block);
  const Status status = draft->model_.Load(plan, diag);
  if (status != Status::kOk) {
    draft->~DraftModel();
    return status;
  }
  *out = draft;
  return Status::kOk;
}

Offer DraftModel::Look(Span<const int32_t> ids, uint32_t most) {
  const Span<const int32_t> read = model_.Ids();
  n_common_ = 0;
  while (n_common_ < Min(read.size(), ids.size()) && read[n_common_] == ids[n_common_]) ++n_common_;
  const size_t room = model_.plan().options.context_tokens;
  if (ids.size() >= room) return {};
  // Embeddings, and tokens that only the other model's matrices have rows for.
  for (size_t i = n_common_; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= model_.plan().program.vocab) return {};
  }
  Offer offer;
  // The last guess does not run.
  offer.n = static_cast<uint32_t>(Min<size_t>(most, room - ids.size() + 1));
  offer.kind = kModelKind;
  offer.guess_ns = guess_time_.Of(1);
  const size_t missing = ids.size() - n_common_;
  if (missing > kUsualTokens) offer.reading_ns = token_time_.Of(missing);
  return offer;
}

Status DraftModel::Read(Span<const int32_t> ids) {
  // The last token runs again if it has run: its logits are gone.
  const size_t n_kept = Min(n_common_, ids.size() - 1);
  ARN_TRY(model_.Rewind(n_kept));
  for (size_t done = n_kept; done < ids.size();) {
    const size_t n = Min<size_t>(ids.size() - done, model_.plan().options.prefill_chunk);
    const bool is_last = done + n == ids.size();
    ARN_TRY(
        model_.Run(ids.subspan(done, n), {}, is_last ? LogitRows::kLastOfEach : LogitRows::kNone));
    done += n;
  }
  return Status::kOk;
}

Proposal DraftModel::Propose(Span<const int32_t> ids, Span<int32_t> out) {
  const size_t missing = ids.size() - n_common_;
  Proposal proposal;
  uint64_t start = MonotonicNs();
  Status status = Read(ids);
  if (missing > kUsualTokens) {
    const uint64_t end = MonotonicNs();
    proposal.reading_ns = end - start;
    if (status == Status::kOk) token_time_.Add(proposal.reading_ns, missing);
    start = end;
  }
  while (status == Status::kOk && proposal.n < out.size()) {
    const int32_t id = model_.Best();
    if (static_cast<uint32_t>(id) >= target_.plan.program.vocab) break;
    out[proposal.n++] = id;
    if (proposal.n < out.size()) status = model_.Run({&id, 1}, {}, LogitRows::kLastOfEach);
  }
  proposal.guesses_ns = MonotonicNs() - start;
  // The first one follows from reading.
  const size_t n_runs = proposal.n - (missing > kUsualTokens && proposal.n != 0 ? 1 : 0);
  if (n_runs != 0) guess_time_.Add(proposal.guesses_ns, n_runs);
  model_.EndCall();
  return proposal;
}

}  // namespace arn
