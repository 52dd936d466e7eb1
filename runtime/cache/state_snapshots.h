// StateSnapshots: snapshots of the recurrent states of each sequence. A snapshot is a reference to
// the slots that held the states at its position: later runs write other slots, so nothing is
// copied. Integers only; the owner counts the references of the slots.
#pragma once

#include <cstdint>

#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/cache/snapshot_thinning.h"

namespace arn {

struct SnapshotOptions {
  uint32_t n_each = 0;  // maximum snapshots of a sequence; 0: none
  uint32_t every = 1;   // tokens between two regular snapshots
};

class StateSnapshots {
 public:
  struct Plan {
    SnapshotOptions options;
    uint32_t n_groups = 0;  // groups of states; 0: the others are empty
    Slice counts;           // u32 [n_sequences]
    Slice places;           // SnapshotPlace [n_sequences, n_each]
    Slice slots;            // u32 [n_sequences, n_each, n_groups]
  };
  static Status MakePlan(const SnapshotOptions& options, uint32_t n_groups, uint32_t n_sequences,
                         Layout* layout, Plan* out);

  // Starts without snapshots. REQUIRES: `memory` is sized by the plan's layout.
  void Init(const Plan& plan, const Memory& memory, uint32_t n_sequences);

  bool is_on() const { return plan_.n_groups != 0 && plan_.options.n_each != 0; }
  uint32_t every() const { return plan_.options.every; }

  // Snapshots of a sequence, by ascending position, and the slots of one: u32 [n_groups].
  Span<const SnapshotPlace> places(uint32_t sequence) const {
    return {places_ + First(sequence), is_on() ? counts_[sequence] : 0};
  }
  const uint32_t* slots(uint32_t sequence, size_t i) const {
    return slots_ + (First(sequence) + i) * plan_.n_groups;
  }
  bool IsFull(uint32_t sequence) const { return counts_[sequence] == plan_.options.n_each; }

  // Adds a snapshot behind the others. REQUIRES: is_on(), not IsFull(), its position is the
  // largest. slots: u32 [n_groups].
  void Add(uint32_t sequence, const SnapshotPlace& place, const uint32_t* slots);
  void Mark(uint32_t sequence, size_t i) { places_[First(sequence) + i].is_mark = true; }
  void Remove(uint32_t sequence, size_t i);
  // Forgets all snapshots of the sequence.
  void Clear(uint32_t sequence) {
    if (is_on()) counts_[sequence] = 0;
  }
  // Makes those of `to` a copy of those of `from`.
  void Copy(uint32_t from, uint32_t to);

 private:
  size_t First(uint32_t sequence) const { return size_t{sequence} * plan_.options.n_each; }

  Plan plan_;
  uint32_t* counts_ = nullptr;
  SnapshotPlace* places_ = nullptr;
  uint32_t* slots_ = nullptr;
};

}  // namespace arn
