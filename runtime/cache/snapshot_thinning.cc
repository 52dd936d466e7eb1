#include "runtime/cache/snapshot_thinning.h"

namespace arn {

size_t ChooseSnapshotToDrop(Span<const SnapshotPlace> full, const SnapshotPlace& added) {
  uint32_t n_marks = 0;
  for (const SnapshotPlace& place : full) n_marks += place.is_mark ? 1 : 0;
  n_marks += added.is_mark ? 1 : 0;
  const bool drops_mark = n_marks > MaxMarks(static_cast<uint32_t>(full.size()));
  size_t best = full.size();
  uint64_t best_gap = 0, best_distance = 0;
  for (size_t i = 0; i < full.size(); ++i) {
    if (full[i].is_mark != drops_mark) continue;
    const uint32_t before = i == 0 ? 0 : full[i - 1].position;
    const uint32_t behind = i + 1 == full.size() ? added.position : full[i + 1].position;
    const uint64_t gap = behind - before, distance = added.position - before;
    if (best == full.size() || gap * best_distance < best_gap * distance) {
      best = i;
      best_gap = gap;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace arn
