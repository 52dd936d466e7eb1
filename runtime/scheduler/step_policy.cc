#include "runtime/scheduler/step_policy.h"

#include "platform/base/arith.h"

namespace arn {

void ShareRows(uint32_t budget, uint64_t* turn, Span<RowWish> wishes) {
  const size_t n = wishes.size();
  size_t first = 0;
  while (first < n && wishes[first].request < *turn) ++first;
  for (RowWish& wish : wishes) wish.rows = 0;
  uint32_t left = budget;
  for (size_t i = 0; i < n; ++i) {
    RowWish& wish = wishes[(first + i) % n];
    if (left == 0) {
      *turn = wish.request;
      return;
    }
    wish.rows = 1;
    --left;
  }
  for (;;) {
    uint32_t n_hungry = 0;
    for (const RowWish& wish : wishes) n_hungry += wish.rows < wish.most ? 1 : 0;
    if (left == 0 || n_hungry == 0) return;
    const uint32_t each = Max(1u, left / n_hungry);
    for (RowWish& wish : wishes) {
      const uint32_t more = Min(Min(each, wish.most - wish.rows), left);
      wish.rows += more;
      left -= more;
    }
  }
}

}  // namespace arn
