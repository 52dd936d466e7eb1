#include "runtime/session/constrainer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "platform/base/arith.h"
#include "runtime/session/timer.h"

namespace arn {
namespace {

// Candidates tested in the order of their logits before all tokens are looked at.
constexpr uint32_t kCandidates = 32;
// Draws from all tokens before the draw from the allowed ones.
constexpr int kDraws = 4;
// Logit of a token that is not allowed.
constexpr float kNotAllowed = -std::numeric_limits<float>::infinity();

constexpr char kNoMemory[] = "the session was created with constraint_bytes = 0";

constexpr uint64_t kHashSeed = 0xCBF29CE484222325u;
uint64_t AddToHash(uint64_t hash, int32_t id) {
  return (hash ^ static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15u;
}

}  // namespace

Status Constrainer::Init(const LogitsOps* ops, Diag* diag) {
  const ConstraintsPlan& plan = core_.plan.constraints;
  if (plan.bytes_each == 0) return Status::kOk;
  ops_ = ops;
  tokens_.tokenizer = core_.model.tokenizer;
  tokens_.end_ids = core_.model.eos_ids;
  tokens_.vocab = core_.plan.program.vocab;
  tokens_.encode_scratch = {core_.memory.As<std::byte>(plan.encode),
                            static_cast<size_t>(plan.encode.bytes)};
  ARN_TRY(ReadTokenBytes(core_.model, &tokens_.bytes, diag));
  const uint32_t n = sequences_.size();
  auto* uses = core_.memory.As<ConstraintUse>(plan.uses);
  for (uint32_t i = 0; i < 2 * n; ++i) new (uses + i) ConstraintUse();
  uses_ = {uses, n};
  old_uses_ = {uses + n, n};
  masked_ = core_.memory.As<float>(plan.masked);
  found_ = core_.memory.As<uint32_t>(plan.found);
  return Status::kOk;
}

Span<std::byte> Constrainer::Slot(uint32_t slot) const {
  const ConstraintsPlan& plan = core_.plan.constraints;
  return {core_.memory.As<std::byte>(plan.blocks) + slot * plan.bytes_each,
          static_cast<size_t>(plan.bytes_each)};
}

Span<std::byte> Constrainer::FreeSlot() const {
  for (uint32_t slot = 0; slot < core_.plan.constraints.n; ++slot) {
    const Span<std::byte> block = Slot(slot);
    bool is_used = false;
    for (const ConstraintUse& use : uses_) {
      is_used |= reinterpret_cast<std::byte*>(use.constraint) == block.data();
    }
    if (!is_used) return block;
  }
  return {};
}

bool Constrainer::HasFree() const { return !FreeSlot().empty(); }

Status Constrainer::Set(uint32_t sequence, const TokenConstraintOptions& options, uint32_t first) {
  if (core_.plan.constraints.bytes_each == 0) {
    return core_.diag.Fail(Status::kBadState, kNoMemory);
  }
  if (first != kAtNextChoice && first > sequences_.Ids(sequence).size()) {
    return core_.diag.Fail(Status::kBadArgument, "first is %u, the sequence has %zu tokens", first,
                           sequences_.Ids(sequence).size());
  }
  TokenConstraintOptions cancellable = options;
  cancellable.constraint.cancel = &core_.cancel;
  const Status compiled = Compile(sequence, cancellable);
  if (compiled == Status::kCancelled) core_.ClearCancel();
  ARN_TRY(compiled);
  ConstraintUse& use = uses_[sequence];
  if (first == kAtNextChoice) return Status::kOk;
  use.is_pending = false;
  use.start = use.end = first;
  use.hash = kHashSeed;
  const Status status = Read(sequence);
  if (status != Status::kOk) Drop(sequence);
  return status;
}

// Replaces the sequence's constraint by a new one whose text begins at the next choice.
Status Constrainer::Compile(uint32_t sequence, const TokenConstraintOptions& options) {
  Drop(sequence);
  const Span<std::byte> block = FreeSlot();
  if (block.empty()) {
    return core_.diag.Fail(Status::kBadState,
                           "all %u constraints of the session are in use (max_constraints)",
                           core_.plan.constraints.n);
  }
  TokenConstraint* constraint = nullptr;
  ARN_TRY(CompileIn(options, block, &constraint, &core_.diag));
  Use(sequence, constraint);
  return Status::kOk;
}

Status Constrainer::CompileIn(const TokenConstraintOptions& options, Span<std::byte> block,
                              TokenConstraint** out, Diag* diag) const {
  // Two states for each sequence: reordering copies them through the second half.
  return TokenConstraint::Compile(options, tokens_, 2 * sequences_.size(), block, out, diag);
}

Status Constrainer::CompileApart(const TokenConstraintOptions& options, Span<std::byte> block,
                                 TokenConstraint** out, Diag* diag) const {
  *out = nullptr;
  if (core_.plan.constraints.bytes_each == 0) return diag->Fail(Status::kBadState, kNoMemory);
  TokenConstraintOptions cancellable = options;
  cancellable.constraint.cancel = &core_.cancel;
  return CompileIn(cancellable, block, out, diag);
}

void Constrainer::Use(uint32_t sequence, TokenConstraint* constraint) {
  constraint->Reset(sequence);
  uses_[sequence] = ConstraintUse();
  uses_[sequence].constraint = constraint;
  uses_[sequence].n_dropped = sequences_.At(sequence).n_dropped;
}

void Constrainer::DropAll() {
  for (ConstraintUse& use : uses_) use = ConstraintUse();
}

bool Constrainer::HasSome() const {
  for (const ConstraintUse& use : uses_) {
    if (use.constraint != nullptr) return true;
  }
  return false;
}

SavedConstraint Constrainer::ToSave(uint32_t sequence) {
  SavedConstraint saved;
  if (!Has(sequence)) return saved;
  HeedShift(sequence);
  const ConstraintUse& use = uses_[sequence];
  saved.owner = sequence;
  for (uint32_t s = sequence; s-- > 0;) {
    if (uses_[s].constraint == use.constraint) saved.owner = s;
  }
  // After a rewind behind its beginning a text begins again.
  if (!use.is_pending && use.start <= sequences_.Ids(sequence).size()) {
    saved.start = use.start;
    saved.is_cut = use.is_cut;
  }
  saved.block_bytes = core_.plan.constraints.bytes_each;
  saved.options = use.constraint->options();
  return saved;
}

Status Constrainer::Restore(uint32_t sequence, const SavedConstraint& saved) {
  if (!saved.exists()) return Status::kOk;
  if (saved.owner == sequence) {
    TokenConstraintOptions options = saved.options;
    options.constraint.calls.format = &ReplyFormatOf(core_.model);
    ARN_TRY(Compile(sequence, options));
  } else {
    TokenConstraint* const shared = uses_[saved.owner].constraint;
    if (shared == nullptr) {
      return core_.diag.Fail(Status::kBadSave,
                             "sequence %u has the constraint of sequence %u, which has none",
                             sequence, saved.owner);
    }
    Use(sequence, shared);
  }
  if (saved.start == kAtNextChoice) return Status::kOk;
  ConstraintUse& use = uses_[sequence];
  use.is_pending = false;
  use.is_cut = saved.is_cut;
  use.start = saved.start;
  use.end = saved.is_cut ? UINT32_MAX : saved.start;
  use.hash = kHashSeed;
  return Status::kOk;
}

TokenConstraint* Constrainer::Find(uint32_t sequence) const {
  return uses_.empty() ? nullptr : uses_[sequence].constraint;
}

void Constrainer::SetEnds(uint32_t sequence, Span<const int32_t> extra, bool are_allowed) {
  uses_[sequence].constraint->SetEnds(extra, are_allowed);
}

// Moves the positions by what context shifts have dropped since the last look.
void Constrainer::HeedShift(uint32_t sequence) {
  ConstraintUse& use = uses_[sequence];
  const Sequence& at = sequences_.At(sequence);
  const uint32_t dropped = at.n_dropped - use.n_dropped;
  use.n_dropped = at.n_dropped;
  if (dropped == 0 || use.is_pending) return;
  const uint32_t first_kept = at.n_pinned + dropped;
  const bool is_cut = use.start < first_kept && use.end > at.n_pinned;
  use.start = use.start >= first_kept ? use.start - dropped : Min(use.start, at.n_pinned);
  use.end = use.end >= first_kept ? use.end - dropped : Min(use.end, at.n_pinned);
  if (!is_cut) return;
  use.is_cut = true;
  use.hash = kHashSeed;
  const Span<const int32_t> ids = sequences_.Ids(sequence);
  for (uint32_t i = use.start; i < use.end && i < ids.size(); ++i) {
    use.hash = AddToHash(use.hash, ids[i]);
  }
}

Status Constrainer::Read(uint32_t sequence) {
  Timer timer(&step_ns_);
  HeedShift(sequence);
  ConstraintUse& use = uses_[sequence];
  const Span<const int32_t> ids = sequences_.Ids(sequence);
  if (use.is_pending || ids.size() < use.start) {
    use.constraint->Reset(sequence);
    use.is_pending = use.is_cut = false;
    use.start = use.end = static_cast<uint32_t>(ids.size());
    use.hash = kHashSeed;
  }
  uint64_t hash = kHashSeed;
  for (uint32_t i = use.start; i < use.end && i < ids.size(); ++i) hash = AddToHash(hash, ids[i]);
  if (ids.size() < use.end || hash != use.hash) {
    if (use.is_cut) {
      return core_.diag.Fail(Status::kBadState,
                             "sequence %u has been rewound or restored, and a context shift "
                             "dropped the beginning of its constrained text: set the constraint "
                             "again",
                             sequence);
    }
    use.constraint->Reset(sequence);
    use.end = use.start;
    use.hash = kHashSeed;
  }
  use.constraint->ClearFailure();
  for (; use.end < ids.size(); ++use.end) {
    size_t n_bytes = 0;
    if (ids[use.end] < 0 || !use.constraint->Accept(sequence, ids[use.end], &n_bytes)) {
      ARN_TRY(CheckFailure(sequence));
      return core_.diag.Fail(
          Status::kBadState,
          "token %u of sequence %u (id %d) breaks its constraint after %zu bytes", use.end,
          sequence, ids[use.end], n_bytes);
    }
    use.hash = AddToHash(use.hash, ids[use.end]);
  }
  return Status::kOk;
}

bool Constrainer::MustEnd(uint32_t sequence) {
  Timer timer(&step_ns_);
  return uses_[sequence].constraint->MustEnd(sequence);
}

bool Constrainer::HasBegun(uint32_t sequence) const {
  const ConstraintUse& use = uses_[sequence];
  return !use.is_pending && use.end > use.start && use.start <= sequences_.Ids(sequence).size();
}

Span<const int32_t> Constrainer::ForcedIds(uint32_t sequence) {
  Timer timer(&step_ns_);
  return uses_[sequence].constraint->Forced(sequence);
}

uint32_t Constrainer::Narrow(uint32_t sequence, int32_t id, Span<int32_t> guesses, uint32_t n,
                             uint32_t* n_certain) {
  Timer timer(&step_ns_);
  return uses_[sequence].constraint->LookAhead(sequence, sequences_.size() + sequence, id, guesses,
                                               n, n_certain);
}

bool Constrainer::Allows(uint32_t sequence, int32_t id) {
  Timer timer(&step_ns_);
  return uses_[sequence].constraint->Allows(sequence, id);
}

void Constrainer::EndStep(uint32_t sequence) {
  uses_[sequence].constraint->AddTime(step_ns_);
  step_ns_ = 0;
}

Status Constrainer::CheckFailure(uint32_t sequence) {
  if (const char* failure = uses_[sequence].constraint->Failure()) {
    return core_.diag.Fail(Status::kOutOfMemory, "the constraint of sequence %u: %s (%llu bytes)",
                           sequence, failure,
                           static_cast<unsigned long long>(core_.plan.constraints.bytes_each));
  }
  return Status::kOk;
}

void Constrainer::LimitWork(uint64_t units) {
  for (const ConstraintUse& use : uses_) {
    if (use.constraint != nullptr) use.constraint->SetWork(units);
  }
  for (uint32_t s = 0; s < uses_.size(); ++s) {
    TokenConstraint* const constraint = uses_[s].constraint;
    if (constraint != nullptr && constraint->MustFinish(s)) {
      constraint->SetWork(TokenConstraint::kAnyWork);
    }
  }
}

bool Constrainer::IsPutOff(uint32_t sequence) const {
  return Has(sequence) && uses_[sequence].constraint->IsPutOff();
}

int32_t Constrainer::BestOfMask(uint32_t sequence, const float* logits) {
  const Span<const uint32_t> bits = uses_[sequence].constraint->Mask(sequence);
  int32_t best = -1;
  for (uint32_t word = 0; word < bits.size(); ++word) {
    for (uint32_t left = bits[word]; left != 0; left &= left - 1) {
      const auto id =
          static_cast<int32_t>(word * 32 + static_cast<uint32_t>(std::countr_zero(left)));
      if (best < 0 || logits[id] > logits[best]) best = id;
    }
  }
  return best;
}

// Tests the best tokens in the order of their logits, then looks at all.
int32_t Constrainer::BestAllowed(uint32_t sequence, const float* logits) {
  const uint32_t vocab = tokens_.vocab;
  const uint32_t best = ops_->argmax(logits, vocab);
  if (Allows(sequence, static_cast<int32_t>(best))) return static_cast<int32_t>(best);
  Timer timer(&step_ns_);
  TokenConstraint& constraint = *uses_[sequence].constraint;
  Span<const uint32_t> mask;
  if (constraint.HasMask(sequence)) {
    // A mask of few tokens is looked through sooner than the logits.
    constexpr uint32_t kFewTokens = 2048;
    mask = constraint.Mask(sequence);
    uint32_t n_allowed = 0;
    for (const uint32_t word : mask) n_allowed += static_cast<uint32_t>(std::popcount(word));
    if (n_allowed <= kFewTokens) return BestOfMask(sequence, logits);
  }
  // A heap of the best so far has the worst on top, whose logit is the threshold.
  const auto before = [logits](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  uint32_t candidates[kCandidates];
  uint32_t n = 0;
  float threshold = -std::numeric_limits<float>::infinity();
  // Small blocks first: until there is a threshold, each of their tokens goes through the heap.
  uint32_t size = kCandidates;
  for (uint32_t first = 0; first < vocab; first += size) {
    size = Min(first == 0 ? size : Min(first, kConstraintBlock), vocab - first);
    const size_t n_found = ops_->collect_at_least(logits + first, size, threshold, found_, size);
    for (size_t i = 0; i < n_found; ++i) {
      const uint32_t id = first + found_[i];
      if (n < kCandidates) {
        candidates[n++] = id;
        std::push_heap(candidates, candidates + n, before);
      } else if (before(id, candidates[0])) {
        std::pop_heap(candidates, candidates + n, before);
        candidates[n - 1] = id;
        std::push_heap(candidates, candidates + n, before);
      }
    }
    if (n == kCandidates) threshold = logits[candidates[0]];
  }
  std::sort_heap(candidates, candidates + n, before);
  for (uint32_t i = 0; i < n; ++i) {
    const auto id = static_cast<int32_t>(candidates[i]);
    if (candidates[i] == best) continue;
    const bool is_allowed = mask.empty() ? constraint.Allows(sequence, id)
                                         : (mask[candidates[i] / 32] >> (id % 32) & 1) != 0;
    if (is_allowed) return id;
  }
  return BestOfMask(sequence, logits);
}

void Constrainer::Mask(uint32_t sequence, const float* logits, float* out) {
  Timer timer(&step_ns_);
  const Span<const uint32_t> bits = uses_[sequence].constraint->Mask(sequence);
  for (uint32_t id = 0; id < tokens_.vocab; ++id) {
    out[id] = (bits[id / 32] >> (id % 32) & 1) != 0 ? logits[id] : kNotAllowed;
  }
}

Status Constrainer::ReadAndMask(uint32_t sequence, const float* logits, const float** out) {
  ARN_TRY(Read(sequence));
  Mask(sequence, logits, masked_);
  EndStep(sequence);
  *out = masked_;
  return CheckFailure(sequence);
}

Status Constrainer::ReadAndMaskInPlace(uint32_t sequence, float* logits) {
  ARN_TRY(Read(sequence));
  Mask(sequence, logits, logits);
  EndStep(sequence);
  return CheckFailure(sequence);
}

Status Constrainer::Choose(uint32_t sequence, const float* logits, Sampler* sampler,
                           int32_t* out_id) {
  TokenConstraint& constraint = *uses_[sequence].constraint;
  int32_t id = -1;
  if (sampler->is_greedy()) {
    id = BestAllowed(sequence, logits);
  } else {
    // Without truncation a draw from all tokens that is allowed is a draw from the allowed ones.
    const bool may_reject = sampler->draws_from_all() && !constraint.HasMask(sequence);
    for (int i = 0; i < kDraws && may_reject && id < 0; ++i) {
      const int32_t drawn = sampler->Sample(logits);
      if (Allows(sequence, drawn)) id = drawn;
    }
    if (id < 0) {
      Mask(sequence, logits, masked_);
      id = sampler->Sample(masked_);
      if (masked_[id] == kNotAllowed) id = -1;
    }
  }
  // The sampling options forbid what the constraint allows.
  if (id >= 0 && logits[id] == -std::numeric_limits<float>::infinity()) id = -1;
  EndStep(sequence);
  ARN_TRY(CheckFailure(sequence));
  if (id < 0) {
    return core_.diag.Fail(Status::kBadState,
                           "no token of the vocabulary continues the constrained text of sequence "
                           "%u",
                           sequence);
  }
  *out_id = id;
  return Status::kOk;
}

void Constrainer::Fork(uint32_t from, uint32_t to) {
  if (uses_.empty()) return;
  uses_[to] = uses_[from];
  if (uses_[from].constraint != nullptr) uses_[from].constraint->Copy(from, to);
}

void Constrainer::Reorder(Span<const uint32_t> parents) {
  if (uses_.empty()) return;
  const auto n = static_cast<uint32_t>(uses_.size());
  for (uint32_t s = 0; s < n; ++s) {
    old_uses_[s] = uses_[s];
    if (uses_[s].constraint != nullptr) uses_[s].constraint->Copy(s, n + s);
  }
  for (uint32_t s = 0; s < parents.size(); ++s) {
    uses_[s] = old_uses_[parents[s]];
    uses_[s].n_dropped = sequences_.At(s).n_dropped;
    if (uses_[s].constraint != nullptr) uses_[s].constraint->Copy(n + parents[s], s);
  }
}

void Constrainer::EndBeams(uint32_t num_beams, uint32_t selected, const ConstraintUse& use) {
  if (uses_.empty()) return;
  for (uint32_t s = 0; s < num_beams; ++s) uses_[s] = ConstraintUse();
  if (selected >= num_beams) return;
  uses_[selected] = use;
  uses_[selected].is_pending = true;
}

}  // namespace arn
