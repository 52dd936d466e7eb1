// State groups in the page planner, against plain lists: each sequence is a list of tokens, each
// slot holds the list its state belongs to. A run reads one slot and writes another.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/cache/kv_cache.h"

namespace arn {
namespace {

using Tokens = std::vector<int>;
constexpr uint32_t kContext = 24;

class Model {
 public:
  // A group of states next to a group of pages.
  explicit Model(uint32_t n_sequences) : n_sequences_(n_sequences) {
    CacheGroup pages;
    pages.page_tokens = 4;
    pages.window = 6;
    pages.table_pages = TablePages(pages, kContext, 4);
    PlanPools(&pages, kContext, 4, n_sequences);
    const CacheGroup groups[] = {pages, StateGroupOf(n_sequences)};
    slots_.resize(groups[1].n_pages);
    Layout layout;
    KvCachePlan plan;
    EXPECT_EQ(Status::kOk, PlanKvCache(groups, n_sequences, &layout, &plan));
    bytes_.resize(layout.RegionBytes(Region::kConstants) + 64);
    const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kConstants)] = {
        bytes_.data() + (64 - base % 64) % 64, bytes_.size() - 64};
    cache.Init(plan, memory, kContext);
    lists.resize(n_sequences);
  }

  // Runs n new tokens for each of `sequences`. A failed run has also written its slots.
  void Run(const std::vector<uint32_t>& sequences, uint32_t n, bool fails) {
    std::vector<Growth> growths;
    for (uint32_t s : sequences) growths.push_back({s, n});
    ASSERT_EQ(Status::kOk, cache.Reserve({growths.data(), growths.size()}));
    for (const KvEdit& edit : cache.edits()) ASSERT_EQ(0u, edit.group) << "a slot is copied";
    cache.ClearEdits();
    std::vector<uint32_t> read, written;
    for (uint32_t s : sequences) {
      const PageTable& table = cache.tables(s)[1];
      ASSERT_EQ(0u, table.first_page);
      ASSERT_EQ(lists[s].empty() ? 1u : 2u, table.n_pages);
      if (!lists[s].empty()) read.push_back(table.pages[0]);
      written.push_back(table.pages[table.n_pages - 1]);
    }
    for (size_t i = 0; i < written.size(); ++i) {
      ASSERT_EQ(1, std::count(written.begin(), written.end(), written[i]));
      ASSERT_EQ(0, std::count(read.begin(), read.end(), written[i]));
      Tokens& slot = slots_[written[i]];
      slot = lists[sequences[i]];
      for (uint32_t k = 0; k < n; ++k) slot.push_back(fails ? -1 : next_++);
      if (!fails) lists[sequences[i]] = slot;
    }
    if (!fails) cache.Commit({growths.data(), growths.size()});
  }

  // Each sequence's slot holds its list; the pool holds all other slots.
  void Check() {
    std::vector<uint32_t> named(slots_.size(), 0);
    for (uint32_t s = 0; s < n_sequences_; ++s) {
      ASSERT_EQ(lists[s].size(), cache.length(s));
      const PageTable& table = cache.tables(s)[1];
      for (uint32_t i = 0; i < table.n_pages; ++i) ++named[table.pages[i]];
      const PageTable seen = cache.SeenTable(s, 1);
      ASSERT_EQ(lists[s].empty() ? 0u : 1u, seen.n_pages);
      if (seen.n_pages == 1) {
        ASSERT_EQ(lists[s], slots_[seen.pages[0]]) << "sequence " << s;
      }
      ASSERT_EQ(lists[s].size(), cache.FirstRewindPosition(s));
    }
    uint32_t n_used = 0;
    for (uint32_t slot = 0; slot < named.size(); ++slot) {
      ASSERT_EQ(named[slot], cache.pool(1).References(slot));
      n_used += named[slot] != 0 ? 1 : 0;
    }
    ASSERT_EQ(n_used, cache.pool(1).n_used());
  }

  KvCache cache;
  std::vector<Tokens> lists;

 private:
  const uint32_t n_sequences_;
  int next_ = 0;
  std::vector<Tokens> slots_;
  std::vector<std::byte> bytes_;
};

// A free slot exists after any mix of forks, failed runs and beam reorders.
TEST(KvCache_States, RandomRunsForksAndReorders_FollowTheLists) {
  std::mt19937 rng(61);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  for (uint32_t n_sequences : {1u, 2u, 3u, 5u}) {
    for (int round = 0; round < 40; ++round) {
      Model model(n_sequences);
      for (int step = 0; step < 150; ++step) {
        SCOPED_TRACE(testing::Message()
                     << n_sequences << " sequences, round " << round << ", step " << step);
        const uint32_t s = below(n_sequences), other = below(n_sequences);
        switch (below(6)) {
          case 0:
            model.cache.Clear(s);
            model.lists[s].clear();
            break;
          case 1:
            if (s == other || !model.lists[other].empty()) break;
            ASSERT_EQ(Status::kOk, model.cache.Fork(s, other));
            model.lists[other] = model.lists[s];
            break;
          case 2: {
            const uint32_t first = below(n_sequences);
            std::vector<uint32_t> parents(1 + below(n_sequences - first));
            for (uint32_t& parent : parents) parent = below(n_sequences);
            ASSERT_EQ(Status::kOk, model.cache.Reorder(first, {parents.data(), parents.size()}));
            const std::vector<Tokens> before = model.lists;
            for (size_t i = 0; i < parents.size(); ++i) model.lists[first + i] = before[parents[i]];
            break;
          }
          default: {
            std::vector<uint32_t> sequences;
            const uint32_t n = 1 + below(4);
            for (uint32_t i = 0; i < n_sequences; ++i) {
              if (below(2) == 0 && model.lists[i].size() + n <= kContext) sequences.push_back(i);
            }
            if (sequences.empty()) break;
            ASSERT_NO_FATAL_FAILURE(model.Run(sequences, n, below(4) == 0));
          }
        }
        ASSERT_NO_FATAL_FAILURE(model.Check());
      }
    }
  }
}

TEST(KvCache_States, Rewind_OnlyToTheLength) {
  Model model(1);
  model.Run({0}, 3, false);
  model.Run({0}, 2, true);
  EXPECT_EQ(Status::kBadState, model.cache.Rewind(0, 0));
  EXPECT_EQ(Status::kBadState, model.cache.Rewind(0, 2));
  EXPECT_EQ(Status::kOk, model.cache.Rewind(0, 3));
  model.Check();
  model.cache.Cut(0, 1);
  EXPECT_EQ(1u, model.cache.length(0));
  model.cache.Cut(0, 0);
  EXPECT_EQ(0u, model.cache.pool(1).n_used());
}

// A state cannot be rewound.
TEST(KvCache_States, TokensBeforeQuantising_IsOne) {
  const Model model(1);
  EXPECT_EQ(1u, model.cache.TokensBeforeQuantising(0));
}

TEST(KvCache_States, PoolIsEmpty_NothingIsTaken) {
  // A pool for one sequence, shared by two.
  const CacheGroup group = StateGroupOf(1);
  Layout layout;
  KvCachePlan plan;
  ASSERT_EQ(Status::kOk, PlanKvCache({&group, 1}, 2, &layout, &plan));
  std::vector<std::byte> bytes(layout.RegionBytes(Region::kConstants) + 64);
  const auto base = reinterpret_cast<uintptr_t>(bytes.data());
  Memory memory;
  memory.region[static_cast<uint32_t>(Region::kConstants)] = {bytes.data() + (64 - base % 64) % 64,
                                                              bytes.size() - 64};
  KvCache cache;
  cache.Init(plan, memory, kContext);
  const Growth both[] = {{0, 1}, {1, 1}};
  ASSERT_EQ(Status::kOk, cache.Reserve(both));
  cache.Commit(both);
  EXPECT_EQ(Status::kContextFull, cache.Reserve(both));
  EXPECT_EQ(2u, cache.pool(0).n_used());
  cache.Clear(0);
  const Growth second[] = {{1, 1}};
  EXPECT_EQ(Status::kOk, cache.Reserve(second));
}

}  // namespace
}  // namespace arn
