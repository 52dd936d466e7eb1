// Which snapshot of recurrent states to give up when all slots are taken.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// A snapshot of a sequence's recurrent states after its first `position` tokens.
struct SnapshotPlace {
  uint32_t position = 0;
  bool is_mark = false;  // the caller asked for it; else taken at a regular distance
};

// Marks that n slots keep when regular snapshots need slots too.
constexpr uint32_t MaxMarks(uint32_t n) { return n / 2 + n % 2; }

// Returns the index of the snapshot to drop so that `added` can be kept in as many slots; the
// number of `full` if `added` is not to be kept. Among those of one kind, drops the one whose loss
// leaves the shortest gap in proportion to the distance from the start of the gap to `added`: gaps
// grow with their distance from the end. Drops a mark if there are more than MaxMarks, `added`
// included, else a regular one.
// REQUIRES: `full` is not empty, positions ascend, and all are before `added`.
size_t ChooseSnapshotToDrop(Span<const SnapshotPlace> full, const SnapshotPlace& added);

}  // namespace arn
