#include "runtime/scheduler/step_policy.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Gives a row to the one without that has waited longest; the first of equals.
void ServeOldest(Span<RowWish> wishes) {
  RowWish* oldest = nullptr;
  for (RowWish& wish : wishes) {
    if (wish.rows == 0 && (oldest == nullptr || wish.since < oldest->since)) oldest = &wish;
  }
  oldest->rows = 1;
}

}  // namespace

void ShareRows(uint32_t budget, Span<RowWish> wishes) {
  const bool is_enough = wishes.size() <= budget;
  for (RowWish& wish : wishes) wish.rows = is_enough ? 1 : 0;
  if (!is_enough) {
    for (uint32_t i = 0; i < budget; ++i) ServeOldest(wishes);
    return;
  }
  auto left = budget - static_cast<uint32_t>(wishes.size());
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
