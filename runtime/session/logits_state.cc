#include "runtime/session/logits_state.h"

namespace arn {

bool LogitsState::Has(uint32_t sequence) const {
  return (exist_[sequence / kWordBits] >> sequence % kWordBits & 1) != 0;
}

void LogitsState::Add(uint32_t sequence, int32_t best) {
  best_of_[sequence] = best;
  exist_[sequence / kWordBits] |= uint64_t{1} << sequence % kWordBits;
}

int32_t LogitsState::best_id(uint32_t sequence) const {
  if (MustRead()) return best_id_;
  return Has(sequence) ? best_of_[sequence] : kNoToken;
}

void LogitsState::Drop(uint32_t sequence) {
  exist_[sequence / kWordBits] &= ~(uint64_t{1} << sequence % kWordBits);
}

}  // namespace arn
