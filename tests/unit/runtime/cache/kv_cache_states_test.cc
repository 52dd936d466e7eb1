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
  // Two groups of states next to a group of pages, of a window unless that is 0.
  explicit Model(uint32_t n_sequences, const SnapshotOptions& snapshots = {}, uint32_t window = 6)
      : n_sequences_(n_sequences) {
    CacheGroup pages;
    pages.page_tokens = 4;
    pages.window = window;
    pages.table_pages = TablePages(pages, kContext, 4);
    PlanPools(&pages, kContext, 4, n_sequences);
    const CacheGroup states = StateGroupOf(n_sequences, snapshots.n_each);
    const CacheGroup groups[] = {pages, states, states};
    for (std::vector<Tokens>& slots : slots_) slots.resize(states.n_pages);
    Layout layout;
    KvCachePlan plan;
    EXPECT_EQ(Status::kOk, PlanKvCache(groups, n_sequences, snapshots, &layout, &plan));
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
    const std::vector<Tokens> before = lists;
    for (uint32_t s : sequences) {
      for (uint32_t k = 0; k < n && !fails; ++k) lists[s].push_back(next_++);
    }
    for (uint32_t g : {1u, 2u}) {
      std::vector<uint32_t> read, written;
      for (uint32_t s : sequences) {
        const PageTable& table = cache.tables(s)[g];
        ASSERT_EQ(0u, table.first_page);
        ASSERT_EQ(before[s].empty() ? 1u : 2u, table.n_pages);
        if (!before[s].empty()) read.push_back(table.pages[0]);
        written.push_back(table.pages[table.n_pages - 1]);
      }
      for (size_t i = 0; i < written.size(); ++i) {
        ASSERT_EQ(1, std::count(written.begin(), written.end(), written[i]));
        ASSERT_EQ(0, std::count(read.begin(), read.end(), written[i]));
        slots_[g - 1][written[i]] = fails ? Tokens{-1} : lists[sequences[i]];
      }
    }
    if (!fails) cache.Commit({growths.data(), growths.size()});
  }

  // Each sequence's slot holds its list, those of its snapshots the beginnings of it; the pool
  // holds all other slots.
  void Check() {
    for (uint32_t g : {1u, 2u}) ASSERT_NO_FATAL_FAILURE(CheckGroup(g));
    for (uint32_t s = 0; s < n_sequences_; ++s) {
      ASSERT_EQ(lists[s].size(), cache.length(s));
      ASSERT_EQ(FirstRewindPosition(s), cache.FirstRewindPosition(s));
    }
  }

  // The first position that can be continued from by the pages, and by the states or a snapshot.
  uint32_t FirstRewindPosition(uint32_t s) const {
    const auto length = static_cast<uint32_t>(lists[s].size());
    const PageTable& table = cache.tables(s)[0];
    std::vector<uint32_t> kept = {length};
    if (cache.snapshots().is_on()) kept.push_back(0);
    for (const SnapshotPlace& place : cache.snapshots().places(s)) kept.push_back(place.position);
    uint32_t first = length;
    for (uint32_t position : kept) {
      if (FirstPositionToGoOnFrom(cache.group(0), table.first_page * 4, length) <= position) {
        first = std::min(first, position);
      }
    }
    return first;
  }

  KvCache cache;
  std::vector<Tokens> lists;

 private:
  void CheckGroup(uint32_t g) {
    const std::vector<Tokens>& slots = slots_[g - 1];
    std::vector<uint32_t> named(slots.size(), 0);
    for (uint32_t s = 0; s < n_sequences_; ++s) {
      const PageTable& table = cache.tables(s)[g];
      for (uint32_t i = 0; i < table.n_pages; ++i) ++named[table.pages[i]];
      const PageTable seen = cache.SeenTable(s, g);
      ASSERT_EQ(lists[s].empty() ? 0u : 1u, seen.n_pages);
      if (seen.n_pages == 1) {
        ASSERT_EQ(lists[s], slots[seen.pages[0]]) << "sequence " << s;
      }
      const Span<const SnapshotPlace> places = cache.snapshots().places(s);
      for (size_t i = 0; i < places.size(); ++i) {
        ASSERT_LE(places[i].position, lists[s].size());
        ASSERT_GT(places[i].position, i == 0 ? 0 : places[i - 1].position);
        const uint32_t slot = cache.snapshots().slots(s, i)[g - 1];
        ASSERT_EQ(Tokens(lists[s].begin(), lists[s].begin() + places[i].position), slots[slot])
            << "sequence " << s << ", snapshot at " << places[i].position;
        ++named[slot];
      }
    }
    uint32_t n_used = 0;
    for (uint32_t slot = 0; slot < named.size(); ++slot) {
      ASSERT_EQ(named[slot], cache.pool(g).References(slot));
      n_used += named[slot] != 0 ? 1 : 0;
    }
    ASSERT_EQ(n_used, cache.pool(g).n_used());
  }

  const uint32_t n_sequences_;
  int next_ = 0;
  std::vector<Tokens> slots_[2];
  std::vector<std::byte> bytes_;
};

// A free slot exists after any mix of forks, failed runs, beam reorders, rewinds and marks.
TEST(KvCache_States, RandomRunsForksAndRewinds_FollowTheLists) {
  std::mt19937 rng(61);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  for (uint32_t n_sequences : {1u, 2u, 3u, 5u}) {
    for (int round = 0; round < 40; ++round) {
      Model model(n_sequences, {static_cast<uint32_t>(round % 5), 1 + below(7)}, 6 * below(2));
      for (int step = 0; step < 150; ++step) {
        SCOPED_TRACE(testing::Message()
                     << n_sequences << " sequences, round " << round << ", step " << step);
        const uint32_t s = below(n_sequences), other = below(n_sequences);
        switch (below(9)) {
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
          case 3: model.cache.KeepSnapshot(s, true); break;
          case 4: {
            const uint32_t position = below(model.cache.length(s) + 1);
            const uint32_t first = model.cache.FirstRewindPosition(s);
            const uint32_t resume = model.cache.ResumePosition(s, position);
            ASSERT_EQ(position < first ? Status::kBadState : Status::kOk,
                      model.cache.Rewind(s, position));
            if (position < first) break;
            ASSERT_GE(resume, first);
            model.lists[s].resize(resume);
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

// Commit keeps a snapshot where a run ends at a multiple of the distance, or behind it.
TEST(KvCache_States, RegularSnapshots_AtMultiplesOrBehind) {
  Model model(1, {8, 4});
  const auto positions = [&] {
    std::vector<uint32_t> all;
    for (const SnapshotPlace& place : model.cache.snapshots().places(0)) {
      all.push_back(place.position);
    }
    return all;
  };
  EXPECT_EQ(4u, model.cache.TokensToSnapshot(0));
  model.Run({0}, 3, false);
  EXPECT_EQ(1u, model.cache.TokensToSnapshot(0));
  EXPECT_EQ(std::vector<uint32_t>(), positions());
  model.Run({0}, 1, true);
  EXPECT_EQ(std::vector<uint32_t>(), positions());
  model.Run({0}, 1, false);
  EXPECT_EQ(std::vector<uint32_t>({4}), positions());
  model.Run({0}, 3, false);
  model.Run({0}, 2, false);
  EXPECT_EQ(std::vector<uint32_t>({4, 9}), positions());
  model.cache.KeepSnapshot(0, true);
  EXPECT_EQ(std::vector<uint32_t>({4, 9}), positions());
  EXPECT_TRUE(model.cache.snapshots().places(0)[1].is_mark);
  model.Check();
}

// The states at a snapshot serve as long as the pages of a window do.
TEST(KvCache_States, Rewind_NeedsSnapshotAndPages) {
  Model model(1, {8, 5});
  for (int i = 0; i < 5; ++i) model.Run({0}, 4, false);
  // Snapshots at 8, 12, 16, 20; the pages from 8 on are held, and serve positions from 13 on.
  EXPECT_EQ(16u, model.cache.FirstRewindPosition(0));
  Model whole(1, {8, 5}, 0);
  for (int i = 0; i < 5; ++i) whole.Run({0}, 4, false);
  EXPECT_EQ(0u, whole.cache.FirstRewindPosition(0));
  EXPECT_EQ(12u, whole.cache.ResumePosition(0, 14));
  EXPECT_EQ(0u, whole.cache.ResumePosition(0, 7));
  EXPECT_EQ(20u, whole.cache.ResumePosition(0, 20));
}

// Rewinding to a state moves no data: a slot is shared with its snapshot until the next run.
TEST(KvCache_States, Rewind_SharesTheSlotOfTheSnapshot) {
  Model model(1, {2, 4}, 0);
  for (int i = 0; i < 3; ++i) model.Run({0}, 3, false);
  EXPECT_EQ(2u, model.cache.pool(1).n_used());  // at 6, and at 9, where the sequence is
  EXPECT_EQ(Status::kOk, model.cache.Rewind(0, 7));
  model.lists[0].resize(6);
  EXPECT_EQ(1u, model.cache.pool(1).n_used());
  model.Check();
}

// States that are held come back with the sequence's length, without a slot beside those planned
// for a run; dropped, they leave the sequence as the run made it.
TEST(KvCache_States, HeldStates_ComeBackOrAreDropped) {
  Model model(2, {}, 0);
  model.Run({0, 1}, 3, false);
  for (const bool comes_back : {true, false}) {
    const std::vector<int32_t> before = model.lists[0];
    model.cache.HoldStates(0);
    model.Run({0}, 4, false);
    EXPECT_EQ(3u, model.cache.pool(1).n_used());
    if (comes_back) {
      model.cache.ReturnToHeld(0);
      model.lists[0] = before;
    } else {
      model.cache.DropHeld(0);
    }
    EXPECT_EQ(2u, model.cache.pool(1).n_used());
    EXPECT_EQ(model.lists[0].size(), model.cache.length(0));
    model.Check();
    model.Run({0, 1}, 1, false);
    model.Check();
  }
}

// Each sequence has its own, so that several guess in one run.
TEST(KvCache_States, HeldStates_OfSeveralSequences) {
  Model model(3, {}, 0);
  model.Run({0, 1, 2}, 3, false);
  const std::vector<int32_t> before = model.lists[1];
  for (const uint32_t s : {0u, 1u}) model.cache.HoldStates(s);
  model.Run({0, 1, 2}, 4, false);
  EXPECT_EQ(5u, model.cache.pool(1).n_used());
  model.cache.ReturnToHeld(1);
  model.lists[1] = before;
  EXPECT_EQ(4u, model.cache.pool(1).n_used());
  model.cache.DropHeld(0);
  EXPECT_EQ(3u, model.cache.pool(1).n_used());
  model.Check();
  model.Run({0, 1, 2}, 1, false);
  model.Check();
}

TEST(KvCache_States, PoolIsEmpty_NothingIsTaken) {
  // A pool for one sequence, shared by two.
  const CacheGroup group = StateGroupOf(1);
  Layout layout;
  KvCachePlan plan;
  ASSERT_EQ(Status::kOk, PlanKvCache({&group, 1}, 2, {}, &layout, &plan));
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
