#include "runtime/cache/state_snapshots.h"

#include <cstring>

namespace arn {

Status StateSnapshots::MakePlan(const SnapshotOptions& options, uint32_t n_groups,
                                uint32_t n_sequences, Layout* layout, Plan* out) {
  *out = Plan();
  if (n_groups == 0 || options.n_each == 0) return Status::kOk;
  out->options = options;
  out->n_groups = n_groups;
  const uint64_t n = uint64_t{n_sequences} * options.n_each;
  ARN_ASSIGN(out->counts, layout->AddArray(Region::kConstants, n_sequences, sizeof(uint32_t)));
  ARN_ASSIGN(out->places, layout->AddArray(Region::kConstants, n, sizeof(SnapshotPlace)));
  ARN_ASSIGN(out->slots, layout->AddArray(Region::kConstants, n * n_groups, sizeof(uint32_t)));
  return Status::kOk;
}

void StateSnapshots::Init(const Plan& plan, const Memory& memory, uint32_t n_sequences) {
  plan_ = plan;
  if (!is_on()) return;
  counts_ = memory.As<uint32_t>(plan.counts);
  places_ = memory.As<SnapshotPlace>(plan.places);
  slots_ = memory.As<uint32_t>(plan.slots);
  for (uint32_t s = 0; s < n_sequences; ++s) counts_[s] = 0;
}

void StateSnapshots::Add(uint32_t sequence, const SnapshotPlace& place, const uint32_t* slots) {
  const size_t at = First(sequence) + counts_[sequence]++;
  places_[at] = place;
  std::memcpy(slots_ + at * plan_.n_groups, slots, plan_.n_groups * sizeof(uint32_t));
}

void StateSnapshots::Remove(uint32_t sequence, size_t i) {
  const size_t left = --counts_[sequence] - i;
  SnapshotPlace* places = places_ + First(sequence) + i;
  uint32_t* slots = slots_ + (First(sequence) + i) * plan_.n_groups;
  std::memmove(places, places + 1, left * sizeof(SnapshotPlace));
  std::memmove(slots, slots + plan_.n_groups, left * plan_.n_groups * sizeof(uint32_t));
}

void StateSnapshots::Copy(uint32_t from, uint32_t to) {
  if (!is_on()) return;
  counts_[to] = counts_[from];
  std::memcpy(places_ + First(to), places_ + First(from), counts_[to] * sizeof(SnapshotPlace));
  std::memcpy(slots_ + First(to) * plan_.n_groups, slots_ + First(from) * plan_.n_groups,
              size_t{counts_[to]} * plan_.n_groups * sizeof(uint32_t));
}

}  // namespace arn
