// NgramDrafter against a search through the whole text.
#include "runtime/speculate/ngram_drafter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace arn {
namespace {

constexpr uint32_t kContext = 300;

class NgramDrafterTest : public testing::Test {
 protected:
  NgramDrafterTest() {
    Layout layout;
    EXPECT_EQ(Status::kOk, PlanNgrams(kContext, 1, &layout, &plan_));
    storage_.resize(layout.RegionBytes(Region::kIo) / sizeof(uint64_t) + 1);
    memory_.region[static_cast<uint32_t>(Region::kIo)] = {
        reinterpret_cast<std::byte*>(storage_.data()), storage_.size() * sizeof(uint64_t)};
    drafter_.Init(plan_, memory_, 0);
  }
  // *kind: that of the guesses, if there are any.
  std::vector<int32_t> Propose(const std::vector<int32_t>& ids, uint32_t most,
                               uint32_t* kind = nullptr) {
    const Span<const int32_t> text(ids.data(), ids.size());
    const Offer offer = drafter_.Look(text, most);
    EXPECT_EQ(0u, offer.guess_ns + offer.reading_ns);
    std::vector<int32_t> out(offer.n);
    if (offer.n == 0) return out;
    EXPECT_EQ(offer.n, drafter_.Propose(text, {out.data(), out.size()}).n);
    if (kind != nullptr) *kind = offer.kind;
    return out;
  }

  NgramPlan plan_;
  std::vector<uint64_t> storage_;
  Memory memory_;
  NgramDrafter drafter_;
};

TEST_F(NgramDrafterTest, WhatFollowedTheLastTokens_ComesFirst) {
  uint32_t kind = 9;
  EXPECT_EQ((std::vector<int32_t>{3, 4, 5}), Propose({1, 2, 3, 4, 5, 6, 1, 2}, 3, &kind));
  EXPECT_EQ(0u, kind);  // a match of two
  EXPECT_EQ((std::vector<int32_t>{}), Propose({1, 2, 3, 4, 5, 6, 1, 2, 9, 8}, 3));
}

TEST_F(NgramDrafterTest, LongestMatchThenTheLatest_IsTaken) {
  // 7 8 is followed by 1 twice, and by 2 once after the same five tokens as now.
  const std::vector<int32_t> ids = {4, 5, 6, 7, 8, 2, 7, 8, 1, 3, 7, 8, 1, 4, 5, 6, 7, 8};
  uint32_t kind = 9;
  EXPECT_EQ((std::vector<int32_t>{2, 7}), Propose(ids, 2, &kind));
  EXPECT_EQ(2u, kind);  // of five
}

TEST_F(NgramDrafterTest, PastTheEnd_GuessesRepeat) {
  EXPECT_EQ((std::vector<int32_t>{1, 2, 1, 2, 1}), Propose({5, 1, 2, 1, 2}, 5));
}

// Embeddings (of images) are below 0.
TEST_F(NgramDrafterTest, Embeddings_AreNotGuessed) {
  EXPECT_EQ((std::vector<int32_t>{3}), Propose({1, 2, 3, -1, 5, 6, 1, 2}, 3));
  EXPECT_EQ((std::vector<int32_t>{}), Propose({1, 2, -1, 5, 6, 1, 2}, 3));
}

TEST_F(NgramDrafterTest, Rewound_GuessesOnlyFromWhatIsThere) {
  std::vector<int32_t> ids = {1, 2, 3, 4, 5, 1, 2};
  EXPECT_EQ((std::vector<int32_t>{3}), Propose(ids, 1));
  // The same place holds other tokens now.
  ids = {9, 9, 8, 1, 2};
  EXPECT_EQ((std::vector<int32_t>{}), Propose(ids, 1));
  drafter_.Reset();
  ids = {1, 2, 7, 1, 2};
  EXPECT_EQ((std::vector<int32_t>{7}), Propose(ids, 1));
}

// Any text: what is guessed has followed the same tokens before, and if the last pair has occurred
// and its slot is its own, something is guessed.
TEST_F(NgramDrafterTest, RandomTexts_GuessesAreWhatFollowed) {
  std::mt19937 rng(3);
  uint32_t n_guessed = 0, n_possible = 0;
  for (int text = 0; text < 50; ++text) {
    drafter_.Reset();
    std::vector<int32_t> ids;
    for (uint32_t i = 0; i < kContext; ++i) {
      ids.push_back(static_cast<int32_t>(rng() % 12));
      uint32_t kind = 0;
      const std::vector<int32_t> guesses = Propose(ids, 4, &kind);
      bool has_pair = false;
      for (size_t at = 2; at < ids.size() && ids.size() > 2; ++at) {
        has_pair |= ids[at - 1] == ids.back() && ids[at - 2] == ids[ids.size() - 2];
      }
      n_possible += has_pair ? 1 : 0;
      n_guessed += guesses.empty() ? 0 : 1;
      if (guesses.empty()) continue;
      ASSERT_TRUE(has_pair);
      const size_t match = (size_t{1} << kind) + 1;  // the least of the kind
      bool is_found = false;
      for (size_t at = match; at < ids.size() && !is_found; ++at) {
        is_found = ids[at] == guesses[0] &&
                   std::equal(ids.end() - match, ids.end(), ids.begin() + at - match);
      }
      ASSERT_TRUE(is_found);
    }
  }
  EXPECT_GT(n_guessed, n_possible * 7 / 10);  // the others' slots were taken by other pairs
}

}  // namespace
}  // namespace arn
