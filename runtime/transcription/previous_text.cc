#include "runtime/transcription/previous_text.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn {

void PreviousText::Add(Span<const int32_t> ids) {
  const size_t n_new = Min(ids.size(), kept_.size());
  const size_t n_old = Min(n_, kept_.size() - n_new);
  if (n_old != 0) std::memmove(kept_.data(), kept_.data() + n_ - n_old, n_old * sizeof(int32_t));
  if (n_new != 0) {
    std::memcpy(kept_.data() + n_old, ids.data() + ids.size() - n_new, n_new * sizeof(int32_t));
  }
  n_ = n_old + n_new;
}

void PreviousText::AddSegment(const TokenRules& rules, Span<const int32_t> ids) {
  const size_t n = ids.size();
  const bool ends_twice = n > 2 && rules.IsTime(ids[n - 2]);
  Add(ids.subspan(0, ends_twice ? n - 1 : n));
}

}  // namespace arn
