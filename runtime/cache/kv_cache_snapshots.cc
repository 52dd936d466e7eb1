// KvCache methods for snapshots of recurrent states.
#include "platform/base/arith.h"
#include "runtime/cache/kv_cache.h"

namespace arn {

uint32_t KvCache::ResumePosition(uint32_t sequence, uint32_t position) const {
  if (!snapshots_.is_on() || position == lengths_[sequence]) return position;
  uint32_t last = 0;
  for (const SnapshotPlace& place : snapshots_.places(sequence)) {
    if (place.position <= position) last = place.position;
  }
  return last;
}

uint32_t KvCache::TokensToSnapshot(uint32_t sequence) const {
  if (!snapshots_.is_on()) return UINT32_MAX;
  return snapshots_.every() - lengths_[sequence] % snapshots_.every();
}

void KvCache::KeepSnapshot(uint32_t sequence, bool is_mark) {
  const SnapshotPlace added{lengths_[sequence], is_mark};
  if (!snapshots_.is_on() || added.position == 0) return;
  const Span<const SnapshotPlace> places = snapshots_.places(sequence);
  if (!places.empty() && places[places.size() - 1].position == added.position) {
    if (is_mark) snapshots_.Mark(sequence, places.size() - 1);
    return;
  }
  if (snapshots_.IsFull(sequence)) {
    const size_t dropped = ChooseSnapshotToDrop(places, added);
    if (dropped == places.size()) return;
    DropSnapshot(sequence, dropped);
  }
  uint32_t slots[kMaxKvGroups];
  uint32_t n = 0;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_state) continue;
    slots[n] = Table(sequence, g).pages[0];
    Retain(g, slots[n++]);
  }
  snapshots_.Add(sequence, added, slots);
}

void KvCache::DropSnapshot(uint32_t sequence, size_t i) {
  const uint32_t* slot = snapshots_.slots(sequence, i);
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (groups_[g].is_state) Release(g, *slot++);
  }
  snapshots_.Remove(sequence, i);
}

void KvCache::DropSnapshotsBehind(uint32_t sequence, uint32_t position) {
  for (size_t i = snapshots_.places(sequence).size(); i > 0; --i) {
    if (snapshots_.places(sequence)[i - 1].position <= position) return;
    DropSnapshot(sequence, i - 1);
  }
}

void KvCache::ShareSnapshots(uint32_t from, uint32_t to) {
  snapshots_.Copy(from, to);
  for (size_t i = 0; i < snapshots_.places(to).size(); ++i) {
    const uint32_t* slot = snapshots_.slots(to, i);
    for (uint32_t g = 0; g < n_groups_; ++g) {
      if (groups_[g].is_state) Retain(g, *slot++);
    }
  }
}

void KvCache::ReturnToSnapshot(uint32_t sequence, uint32_t position) {
  const Span<const SnapshotPlace> places = snapshots_.places(sequence);
  if (places.empty() || places[places.size() - 1].position != position) return;
  UseSlots(sequence, snapshots_.slots(sequence, places.size() - 1));
}

void KvCache::UseSlots(uint32_t sequence, const uint32_t* slot) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_state) continue;
    Release(g, Table(sequence, g).pages[0]);
    Retain(g, *slot);
    Pages(sequence, g)[0] = *slot++;
  }
}

void KvCache::HoldStates(uint32_t sequence) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_state) continue;
    const uint32_t slot = Table(sequence, g).pages[0];
    Retain(g, slot);
    HeldOf(sequence)[g] = {lengths_[sequence], slot};
  }
}

void KvCache::ReturnToHeld(uint32_t sequence) {
  uint32_t slots[kMaxKvGroups];
  uint32_t n = 0, length = 0;
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_state) continue;
    slots[n++] = HeldOf(sequence)[g].slot;
    length = HeldOf(sequence)[g].length;
  }
  Cut(sequence, length);
  UseSlots(sequence, slots);
  DropHeld(sequence);
}

void KvCache::DropHeld(uint32_t sequence) {
  for (uint32_t g = 0; g < n_groups_; ++g) {
    if (!groups_[g].is_state || HeldOf(sequence)[g].length == 0) continue;
    Release(g, HeldOf(sequence)[g].slot);
    HeldOf(sequence)[g] = {};
  }
}

}  // namespace arn
