#include "runtime/scheduler/step_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace arn {
namespace {

using Rows = std::vector<uint32_t>;

Rows Share(uint32_t budget, std::vector<RowWish> wishes) {
  ShareRows(budget, {wishes.data(), wishes.size()});
  Rows rows;
  for (const RowWish& wish : wishes) rows.push_back(wish.rows);
  return rows;
}

TEST(ShareRows, RepliesGetTheirRowFirst) {
  EXPECT_EQ((Rows{1, 13, 1, 1}), Share(16, {{1, 0, 1}, {2, 0, 500}, {3, 0, 1}, {4, 0, 1}}));
}

TEST(ShareRows, PromptsGetEqualParts_AndTheRestOfShortOnes) {
  EXPECT_EQ((Rows{8, 8}), Share(16, {{1, 0, 100}, {2, 0, 100}}));
  EXPECT_EQ((Rows{13, 3}), Share(16, {{1, 0, 100}, {2, 0, 3}}));
  EXPECT_EQ((Rows{2, 3}), Share(16, {{1, 0, 2}, {2, 0, 3}}));
}

TEST(ShareRows, NoWishes_AreShared) { EXPECT_EQ(Rows{}, Share(4, {})); }

TEST(ShareRows, TooSmallABudget_GoesToThoseThatWaitLongest) {
  EXPECT_EQ((Rows{1, 1, 0, 0}), Share(2, {{3, 5, 1}, {5, 5, 9}, {6, 5, 1}, {9, 5, 1}}));
  EXPECT_EQ((Rows{0, 1, 0, 1}), Share(2, {{3, 5, 1}, {5, 4, 9}, {6, 6, 1}, {9, 2, 1}}));
}

// Whoever joins and leaves, nobody waits longer than ceil(n / budget) steps, all rows of the budget
// that are wanted are given, and none more.
TEST(ShareRows, RandomWishes_KeepTheirPromise) {
  constexpr uint32_t kMost = 12;
  std::mt19937 random(3);
  for (const uint32_t budget : {1u, 2u, 3u, 8u, 12u, 30u}) {
    uint64_t next = 1;
    std::map<uint64_t, uint64_t> running;  // request: since
    for (uint64_t step = 1; step < 3000; ++step) {
      for (auto it = running.begin(); it != running.end();) {
        it = random() % 7 == 0 ? running.erase(it) : std::next(it);
      }
      while (running.size() < kMost && random() % 3 != 0) running[next++] = step;
      std::vector<RowWish> wishes;
      uint32_t wanted = 0;
      for (const auto& [request, since] : running) {
        const uint32_t most = random() % 2 == 0 ? 1 : 1 + static_cast<uint32_t>(random() % 9);
        wishes.push_back({request, since, most});
        wanted += most;
      }
      ShareRows(budget, {wishes.data(), wishes.size()});
      uint32_t given = 0;
      for (const RowWish& wish : wishes) {
        given += wish.rows;
        ASSERT_LE(wish.rows, wish.most);
        if (wish.rows != 0) running[wish.request] = step;
        ASSERT_LT(step - running[wish.request], (kMost + budget - 1) / budget) << budget;
      }
      ASSERT_EQ(std::min(budget, wanted), given);
    }
  }
}

}  // namespace
}  // namespace arn
