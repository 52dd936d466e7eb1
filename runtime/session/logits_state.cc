#include "runtime/session/logits_state.h"

namespace arn {

bool LogitsState::Has(uint32_t sequence) const {
  return (exist_[sequence / kWordBits] >> sequence % kWordBits & 1) != 0;
}

void LogitsState::Add(uint32_t sequence) {
  exist_[sequence / kWordBits] |= uint64_t{1} << sequence % kWordBits;
}

void LogitsState::Drop(uint32_t sequence) {
  exist_[sequence / kWordBits] &= ~(uint64_t{1} << sequence % kWordBits);
}

}  // namespace arn
