// Which snapshots of recurrent states are kept, against a plain model, and how far they lie apart.
#include "runtime/cache/snapshot_thinning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace arn {
namespace {

using Places = std::vector<SnapshotPlace>;

size_t CountMarks(const Places& places) {
  return static_cast<size_t>(
      std::count_if(places.begin(), places.end(), [](const auto& p) { return p.is_mark; }));
}

// Tries to leave out each snapshot in turn and compares the gaps that remain.
size_t NaiveChoice(const Places& full, const SnapshotPlace& added) {
  Places all = full;
  all.push_back(added);
  const bool of_marks = CountMarks(all) > (full.size() + 1) / 2;
  size_t best = full.size();
  double least = 2;
  for (size_t left_out = 0; left_out < full.size(); ++left_out) {
    if (full[left_out].is_mark != of_marks) continue;
    Places rest = all;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(left_out));
    const double from = left_out == 0 ? 0 : rest[left_out - 1].position;
    const double share = (rest[left_out].position - from) / (added.position - from);
    if (share < least) {
      least = share;
      best = left_out;
    }
  }
  return best;
}

void Add(Places* places, size_t n, const SnapshotPlace& added) {
  if (places->size() == n) {
    const size_t dropped = ChooseSnapshotToDrop({places->data(), places->size()}, added);
    if (dropped == places->size()) return;
    places->erase(places->begin() + static_cast<ptrdiff_t>(dropped));
  }
  places->push_back(added);
}

TEST(SnapshotThinning, RandomMarks_AgreeWithThePlainModel) {
  std::mt19937 rng(7);
  for (size_t n = 1; n <= 12; ++n) {
    Places places;
    uint32_t position = 0;
    for (int step = 0; step < 400; ++step) {
      position += 1 + static_cast<uint32_t>(rng() % 40);
      const SnapshotPlace added{position, rng() % 3 == 0};
      if (places.size() == n) {
        ASSERT_EQ(NaiveChoice(places, added), ChooseSnapshotToDrop({places.data(), n}, added))
            << n << " slots, step " << step;
      }
      Add(&places, n, added);
    }
  }
}

// One slot goes to the last mark: a regular snapshot never takes it.
TEST(SnapshotThinning, OneSlot_KeepsTheMark) {
  Places places;
  Add(&places, 1, {10, false});
  Add(&places, 1, {20, true});
  Add(&places, 1, {30, false});
  ASSERT_EQ(1u, places.size());
  EXPECT_EQ(20u, places[0].position);
  Add(&places, 1, {40, true});
  EXPECT_EQ(40u, places[0].position);
}

// Marks set before there was a regular snapshot give back what exceeds their half.
TEST(SnapshotThinning, MarksInAllSlots_MakeRoomForRegularOnes) {
  Places places;
  for (uint32_t i = 1; i <= 8; ++i) Add(&places, 8, {10 * i, true});
  for (uint32_t i = 9; i <= 40; ++i) Add(&places, 8, {10 * i, false});
  EXPECT_EQ(4u, CountMarks(places));
  EXPECT_EQ(8u, places.size());
}

// A rewind by d tokens recomputes at most `every` up to a few times `every`, and in proportion to d
// more beyond.
TEST(SnapshotThinning, GapsGrowWithTheirDistance) {
  struct Case {
    size_t n;
    uint32_t length, dense;
    double share;
  };
  for (const Case& c : {Case{8, 64, 2, 1.3}, Case{16, 128, 4, 0.55}}) {
    constexpr uint32_t kEvery = 32;
    Places places;
    for (uint32_t step = 1; step <= c.length; ++step) {
      const uint32_t end = step * kEvery;
      Add(&places, c.n, {end, false});
      ASSERT_EQ(end, places.back().position);
      for (uint32_t position = 1; position < end; ++position) {
        const auto behind = std::upper_bound(
            places.begin(), places.end(), position,
            [](uint32_t value, const SnapshotPlace& place) { return value < place.position; });
        const uint32_t start = behind == places.begin() ? 0 : (behind - 1)->position;
        const uint32_t distance = end - position;
        const double most = distance <= c.dense * kEvery ? 0 : c.share * distance;
        ASSERT_LE(position - start, kEvery + most)
            << c.n << " slots, " << end << " tokens, rewind to " << position;
      }
    }
  }
}

}  // namespace
}  // namespace arn
