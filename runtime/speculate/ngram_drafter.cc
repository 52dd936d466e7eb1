#include "runtime/speculate/ngram_drafter.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

uint32_t KindOfMatch(uint32_t match) {
  return match <= 2 ? 0 : match <= 4 ? 1 : match <= 8 ? 2 : match <= 16 ? 3 : kMatchKinds - 1;
}

}  // namespace

Status PlanNgrams(uint32_t context_tokens, uint32_t n, Layout* layout, NgramPlan* out) {
  out->n = n;
  out->n_slots = 1;
  while (out->n_slots < context_tokens) out->n_slots *= 2;
  ARN_ASSIGN(out->slots, layout->AddArray(Region::kIo, uint64_t{n} * kNgramKinds * out->n_slots,
                                          sizeof(uint32_t)));
  return Status::kOk;
}

void NgramDrafter::Init(const NgramPlan& plan, const Memory& memory, uint32_t index) {
  n_slots_ = plan.n_slots;
  slots_ = n_slots_ == 0 ? nullptr
                         : memory.As<uint32_t>(plan.slots) + size_t{index} * kNgramKinds * n_slots_;
  Reset();
}

void NgramDrafter::Reset() {
  n_indexed_ = 0;
  if (n_slots_ == 0) return;
  std::memset(slots_, 0, size_t{kNgramKinds} * n_slots_ * sizeof(uint32_t));
}

// `last`: the n-gram's last token.
uint32_t* NgramDrafter::SlotOf(uint32_t kind, const int32_t* last) const {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
  uint64_t hash = 0;
  for (uint32_t i = 0; i < kNgramLengths[kind]; ++i) {
    hash = (hash ^ static_cast<uint32_t>(last[-static_cast<int32_t>(i)])) * kFactor;
    hash ^= hash >> 29;
  }
  return slots_ + size_t{kind} * n_slots_ + (hash & (n_slots_ - 1));
}

void NgramDrafter::Extend(Span<const int32_t> ids) {
  const auto n = static_cast<uint32_t>(ids.size());
  // The n-gram at the very end has nothing after it yet.
  for (uint32_t end = Max(1u, Min(n_indexed_, n)); end < n; ++end) {
    for (uint32_t kind = 0; kind < kNgramKinds; ++kind) {
      if (end >= kNgramLengths[kind]) *SlotOf(kind, ids.data() + end - 1) = end;
    }
  }
  n_indexed_ = n;
}

Offer NgramDrafter::Look(Span<const int32_t> ids, uint32_t most) {
  Extend(ids);
  const auto n = static_cast<uint32_t>(ids.size());
  for (uint32_t kind = 0; kind < kNgramKinds; ++kind) {
    if (n <= kNgramLengths[kind]) continue;
    const uint32_t at = *SlotOf(kind, ids.data() + n - 1);
    if (at == 0 || at >= n) continue;
    uint32_t same = 0;
    while (same < Min(at, kMaxNgramMatch) && ids[at - 1 - same] == ids[n - 1 - same]) ++same;
    if (same < kNgramLengths[kind]) continue;
    at_ = at;
    Offer offer;
    offer.kind = KindOfMatch(same);
    // Past the end the guesses repeat themselves. An id below 0 is an embedding, not a token.
    while (offer.n < most && ids[at + offer.n % (n - at)] >= 0) ++offer.n;
    return offer;
  }
  return {};
}

Proposal NgramDrafter::Propose(Span<const int32_t> ids, Span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = ids[at_ + i % (ids.size() - at_)];
  Proposal proposal;
  proposal.n = static_cast<uint32_t>(out.size());
  return proposal;
}

}  // namespace arn
