// NgramDrafter: guesses the next tokens of a sequence from what has followed the same tokens in it
// before (Saxena, "Prompt Lookup Decoding", 2023). An index finds the latest place in constant
// time; it lies in a fixed slice.
#pragma once

#include <cstdint>

#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/speculate/drafter.h"

namespace arn {

// The lengths of n-grams that are looked up, the longest first.
inline constexpr uint32_t kNgramLengths[] = {5, 3, 2};
inline constexpr uint32_t kNgramKinds = 3;
// Longest match that is counted.
inline constexpr uint32_t kMaxNgramMatch = 32;

struct NgramPlan {
  uint32_t n = 0;        // indices, each of one text
  uint32_t n_slots = 0;  // of each length, a power of two; 0: no index
  Slice slots;           // u32 [n, kNgramKinds, n_slots]
};
Status PlanNgrams(uint32_t context_tokens, uint32_t n, Layout* layout, NgramPlan* out);

class NgramDrafter final : public Drafter {
 public:
  // Takes the index-th index. REQUIRES: `memory` is sized by the plan's layout.
  void Init(const NgramPlan& plan, const Memory& memory, uint32_t index);

  // Forgets everything; Look() indexes from the first token on.
  void Reset();
  // Indexes the tokens that a sequence has gained since the last call. A slot is a hint that is
  // verified when it is used, so tokens may have changed or gone meanwhile.
  Offer Look(Span<const int32_t> ids, uint32_t most) override;
  Proposal Propose(Span<const int32_t> ids, Span<int32_t> out) override;

 private:
  void Extend(Span<const int32_t> ids);
  uint32_t* SlotOf(uint32_t kind, const int32_t* last) const;

  uint32_t n_slots_ = 0;
  uint32_t* slots_ = nullptr;  // position after the latest n-gram of this hash; 0: none
  uint32_t n_indexed_ = 0;
  uint32_t at_ = 0;  // where the guesses of the last Look() begin
};

}  // namespace arn
