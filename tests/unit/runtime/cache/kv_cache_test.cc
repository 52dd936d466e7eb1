// The page planner against plain lists: each sequence is a list of tokens, each page an array to
// which the edits are applied. After any operation the visible positions of a sequence must hold
// its tokens, and no page may be lost or have a wrong reference count.
#include "runtime/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/contract/kv_page.h"

namespace arn {
namespace {

// One token of a page: its number, and the position its key is rotated to.
struct Stored {
  int token = -1;
  uint32_t position = 0;
  bool operator==(const Stored& other) const {
    return token == other.token && position == other.position;
  }
};

struct GroupShape {
  uint32_t page_tokens, window, chunk;
  uint32_t residual = kNeverQuantised;
};

struct Setup {
  std::vector<GroupShape> groups;
  uint32_t context = 16;
  uint32_t max_rows = 4;
  uint32_t n_sequences = 1;
  uint32_t kv_tokens = 0;  // 0: enough for all sequences
};

class Model {
 public:
  explicit Model(const Setup& setup) : setup_(setup) {
    std::vector<CacheGroup> groups;
    for (const GroupShape& shape : setup.groups) {
      CacheGroup g;
      g.page_tokens = shape.page_tokens;
      g.window = shape.window;
      g.chunk = shape.chunk;
      g.table_pages = TablePages(g, setup.context, setup.max_rows);
      g.residual = shape.residual;
      PlanPools(&g, setup.context, setup.max_rows, setup.n_sequences);
      if (setup.kv_tokens != 0) {
        const uint32_t most = (setup.kv_tokens + g.page_tokens - 1) / g.page_tokens;
        g.n_pages = std::min(g.n_pages, most);
        g.n_quantised_pages = std::min(g.n_quantised_pages, most);
      }
      groups.push_back(g);
      pages_.emplace_back(g.n_pages, std::vector<Stored>(g.page_tokens));
      quantised_.emplace_back(g.n_quantised_pages, std::vector<Stored>(g.page_tokens));
    }
    Layout layout;
    KvCachePlan plan;
    EXPECT_EQ(Status::kOk,
              PlanKvCache({groups.data(), groups.size()}, setup.n_sequences, {}, &layout, &plan));
    bytes_.resize(layout.RegionBytes(Region::kConstants) + 64);
    const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kConstants)] = {
        bytes_.data() + (64 - base % 64) % 64, bytes_.size() - 64};
    cache.Init(plan, memory, setup.context);
    lists.resize(setup.n_sequences);
  }

  // Appends n new tokens to each of `sequences`.
  void Append(const std::vector<uint32_t>& sequences, uint32_t n, Status* out) {
    std::vector<Growth> growths;
    for (uint32_t s : sequences) growths.push_back({s, n});
    *out = cache.Reserve({growths.data(), growths.size()});
    std::set<std::pair<uint32_t, uint32_t>> copied;
    for (const KvEdit& edit : cache.edits()) copied.insert({edit.group, edit.from});
    CarryOutEdits();
    if (*out != Status::kOk) return;
    CheckQuantised(copied);
    for (uint32_t s : sequences) {
      for (uint32_t i = 0; i < n; ++i) {
        const auto position = static_cast<uint32_t>(lists[s].size());
        lists[s].push_back(++last_token_);
        for (size_t g = 0; g < setup_.groups.size(); ++g) {
          ASSERT_EQ(0u, PageAt(g, s, position) & kQuantisedPage)
              << "a quantised page is written to";
          *Slot(g, s, position) = {last_token_, position};
        }
        // Every row must see all of its positions during the run.
        CheckVisible(s, position);
      }
    }
    cache.Commit({growths.data(), growths.size()});
  }
  Status Append(const std::vector<uint32_t>& sequences, uint32_t n) {
    Status status = Status::kInternal;
    Append(sequences, n, &status);
    return status;
  }

  Status Shift(uint32_t s, uint32_t pinned, uint32_t dropped) {
    const Status status = cache.Shift(s, pinned, dropped, dropped);
    if (status != Status::kOk) return status;
    CarryOutEdits();
    lists[s].erase(lists[s].begin() + pinned, lists[s].begin() + pinned + dropped);
    return status;
  }

  Status Fork(uint32_t from, uint32_t to) {
    const Status status = cache.Fork(from, to);
    if (status == Status::kOk) lists[to] = lists[from];
    return status;
  }

  // Other per-sequence data follows moves(); here a copy of the lists.
  Status Reorder(uint32_t first, const std::vector<uint32_t>& parents) {
    std::vector<std::vector<int>> rows = lists;
    rows.emplace_back();
    const std::vector<std::vector<int>> before = lists;
    const Status status = cache.Reorder(first, {parents.data(), parents.size()});
    if (status != Status::kOk) return status;
    for (size_t i = 0; i < parents.size(); ++i) lists[first + i] = before[parents[i]];
    for (const RowMove& move : cache.moves()) rows[move.to] = rows[move.from];
    rows.pop_back();
    EXPECT_EQ(lists, rows);
    return status;
  }

  Status Rewind(uint32_t s, uint32_t position) {
    const Status status = cache.Rewind(s, position);
    if (status == Status::kOk) lists[s].resize(position);
    return status;
  }

  void Clear(uint32_t s) {
    cache.Clear(s);
    lists[s].clear();
  }

  // Checks all positions visible to the next token of each sequence, and the pools' reference
  // counts.
  void Check() {
    for (uint32_t s = 0; s < lists.size(); ++s) {
      ASSERT_EQ(lists[s].size(), cache.length(s));
      CheckVisible(s, static_cast<uint32_t>(lists[s].size()));
    }
    for (uint32_t g = 0; g < setup_.groups.size(); ++g) {
      std::map<uint32_t, uint32_t> names;
      for (uint32_t s = 0; s < lists.size(); ++s) {
        const PageTable& table = cache.tables(s)[g];
        ASSERT_LE(table.n_pages, cache.group(g).table_pages);
        for (uint32_t i = 0; i < table.n_pages; ++i) ++names[table.pages[i]];
      }
      for (uint32_t bit : {0u, kQuantisedPage}) {
        const PagePool& pool = bit == 0 ? cache.pool(g) : cache.quantised_pool(g);
        uint32_t used = 0;
        for (uint32_t page = 0; page < pool.n_pages(); ++page) {
          const uint32_t expected = names.count(page | bit) == 0 ? 0u : names[page | bit];
          ASSERT_EQ(expected, pool.References(page));
          used += expected != 0;
        }
        ASSERT_EQ(used, pool.n_used());
      }
    }
  }

  std::vector<uint32_t> FreePages() const {
    std::vector<uint32_t> free;
    for (uint32_t g = 0; g < setup_.groups.size(); ++g) free.push_back(cache.pool(g).n_free());
    return free;
  }

  KvCache cache;
  std::vector<std::vector<int>> lists;

 private:
  uint32_t PageAt(size_t g, uint32_t s, uint32_t position) {
    const PageTable& table = cache.tables(s)[g];
    const uint32_t p = setup_.groups[g].page_tokens;
    EXPECT_GE(position / p, table.first_page);
    EXPECT_LT(position / p - table.first_page, table.n_pages);
    return table.pages[position / p - table.first_page];
  }
  std::vector<Stored>& Page(size_t g, uint32_t page) {
    return (page & kQuantisedPage) != 0 ? quantised_[g][page & ~kQuantisedPage] : pages_[g][page];
  }
  Stored* Slot(size_t g, uint32_t s, uint32_t position) {
    return &Page(g, PageAt(g, s, position))[position % setup_.groups[g].page_tokens];
  }

  // After a reservation, every page older than the residual in all tables that reference it is
  // quantised, except pages shared until this reservation copied them.
  void CheckQuantised(const std::set<std::pair<uint32_t, uint32_t>>& copied) {
    for (uint32_t g = 0; g < setup_.groups.size(); ++g) {
      const GroupShape& shape = setup_.groups[g];
      std::map<uint32_t, bool> old;
      for (uint32_t s = 0; s < lists.size(); ++s) {
        const PageTable& table = cache.tables(s)[g];
        for (uint32_t i = 0; i < table.n_pages; ++i) {
          const uint64_t end = (uint64_t{table.first_page} + i + 1) * shape.page_tokens;
          const bool is_old = end + shape.residual <= lists[s].size();
          old[table.pages[i]] = is_old && (old.count(table.pages[i]) == 0 || old[table.pages[i]]);
        }
      }
      if (setup_.kv_tokens != 0) continue;  // a pool too small for all sequences may have been full
      for (const auto& [page, is_old] : old) {
        if (copied.count({g, page}) != 0) continue;
        ASSERT_FALSE(is_old && (page & kQuantisedPage) == 0) << "group " << g << " page " << page;
      }
    }
  }

  // Checks the tokens of sequence s visible to the query at `position`.
  void CheckVisible(uint32_t s, uint32_t position) {
    for (size_t g = 0; g < setup_.groups.size(); ++g) {
      const GroupShape& shape = setup_.groups[g];
      const PageTable& table = cache.tables(s)[g];
      uint32_t first = FirstVisible(position, shape.window, shape.chunk);
      if (shifted_) first = std::max(first, table.first_page * shape.page_tokens);
      for (uint32_t p = first; p <= position && p < lists[s].size(); ++p) {
        const Stored expected{lists[s][p], p};
        ASSERT_EQ(expected, *Slot(g, s, p)) << "sequence " << s << " group " << g << " at " << p;
      }
    }
  }

  void CarryOutEdits() {
    for (const KvEdit& edit : cache.edits()) {
      auto& page = Page(edit.group, edit.to);
      page = Page(edit.group, edit.from);
      if (((edit.from ^ edit.to) & kQuantisedPage) != 0) {
        // Only whole pages are quantised or dequantised.
        ASSERT_EQ(setup_.groups[edit.group].page_tokens, edit.n_tokens);
      }
      if (edit.unrotated_by == 0) continue;
      for (uint32_t i = 0; i < edit.n_tokens; ++i) page[i].position -= edit.unrotated_by;
      shifted_ = true;
    }
    cache.ClearEdits();
  }

  Setup setup_;
  std::vector<std::vector<std::vector<Stored>>> pages_, quantised_;
  std::vector<std::byte> bytes_;
  int last_token_ = 0;
  bool shifted_ = false;
};

TEST(KvCache_Exhaustive, OneSequence_EveryWindowChunkPageAndRunLength) {
  for (uint32_t context : {1u, 5u, 16u, 19u}) {
    for (uint32_t page : {1u, 2u, 4u, 8u}) {
      for (uint32_t window = 0; window <= 9; ++window) {
        for (uint32_t chunk : {0u, 1u, 3u, 4u, 8u}) {
          for (uint32_t rows = 1; rows <= 7; ++rows) {
            Model model({{{page, window, chunk}, {4, 0, 0}}, context, rows, 1, 0});
            uint32_t length = 0;
            for (int round = 0; round < 2; ++round) {
              while (length + rows <= context) {
                ASSERT_EQ(Status::kOk, model.Append({0}, rows));
                length += rows;
                ASSERT_NO_FATAL_FAILURE(model.Check());
              }
              ASSERT_EQ(Status::kContextFull, model.Append({0}, rows));
              ASSERT_NO_FATAL_FAILURE(model.Check());
              model.Clear(0);
              length = 0;
              ASSERT_EQ(0u, model.cache.pool(0).n_used());
            }
          }
        }
      }
    }
  }
}

// Rewinding to any position from FirstRewindPosition on works; one position earlier is refused.
TEST(KvCache_Exhaustive, Rewind_IsAllowedExactlyWhereThePagesAre) {
  for (uint32_t page : {1u, 2u, 4u}) {
    for (uint32_t window : {0u, 1u, 3u, 4u, 6u}) {
      for (uint32_t chunk : {0u, 3u, 4u}) {
        for (uint32_t length = 1; length <= 17; ++length) {
          for (uint32_t position = 0; position <= length; ++position) {
            Model model({{{page, window, chunk}}, 20, 1, 1, 0});
            for (uint32_t i = 0; i < length; ++i) ASSERT_EQ(Status::kOk, model.Append({0}, 1));
            const bool allowed = position >= model.cache.FirstRewindPosition(0);
            const Status status = model.Rewind(0, position);
            ASSERT_EQ(allowed ? Status::kOk : Status::kBadState, status);
            ASSERT_NO_FATAL_FAILURE(model.Check());
            while (model.lists[0].size() < 20) {
              ASSERT_EQ(Status::kOk, model.Append({0}, 1));
              ASSERT_NO_FATAL_FAILURE(model.Check());
            }
            if (!allowed) {
              // The refusal is necessary: a position visible from there is not held.
              const PageTable& table = model.cache.tables(0)[0];
              ASSERT_LT(FirstVisible(position, window, chunk), table.first_page * page);
            }
          }
        }
      }
    }
  }
}

TEST(KvCache_Random, ForksRewindsShiftsAndBatches_FollowTheLists) {
  const std::vector<std::vector<GroupShape>> shapes = {
      {{4, 0, 0}},
      {{2, 5, 0}},
      {{4, 0, 0}, {2, 7, 0}},
      {{4, 0, 8}, {4, 0, 0}},
      {{1, 3, 0}, {8, 0, 0}, {2, 0, 4}},
      {{4, 0, 0, 8}},
      {{2, 11, 0, 3}, {4, 0, 0, 1}, {8, 0, 0, 100}},
  };
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    for (uint32_t kv_tokens : {0u, 70u}) {
      std::mt19937 random(static_cast<uint32_t>(shape * 2 + (kv_tokens != 0)));
      Model model({shapes[shape], 48, 5, 4, kv_tokens});
      uint32_t full = 0, forks = 0, shifts = 0, reorders = 0;
      for (int i = 0; i < 6000; ++i) {
        SCOPED_TRACE("shape " + std::to_string(shape) + " operation " + std::to_string(i));
        const uint32_t s = random() % 4, other = random() % 4;
        switch (random() % 18) {
          case 0: model.Clear(s); break;
          case 1:
          case 2:
            if (s != other) {
              const bool empty = model.lists[other].empty();
              ASSERT_EQ(empty ? Status::kOk : Status::kBadState, model.Fork(s, other));
              forks += empty;
            }
            break;
          case 3: {
            const auto length = static_cast<uint32_t>(model.lists[s].size());
            (void)model.Rewind(s, length - random() % (length / 4 + 1));
            break;
          }
          case 4: {
            const uint32_t unit = 8;
            const auto units = static_cast<uint32_t>(model.lists[s].size()) / unit;
            if (units > 0) {
              const uint32_t pinned = random() % units;
              const Status status =
                  model.Shift(s, pinned * unit, (1 + random() % (units - pinned)) * unit);
              ASSERT_TRUE(status == Status::kOk || status == Status::kContextFull);
              shifts += status == Status::kOk;
            }
            break;
          }
          case 5:
          case 6: {
            std::vector<uint32_t> parents(random() % (5 - s));
            for (uint32_t& parent : parents) parent = random() % 4;
            const auto free = model.FreePages();
            ASSERT_EQ(Status::kOk, model.Reorder(s, parents));
            for (size_t g = 0; g < free.size(); ++g) {
              ASSERT_LE(free[g], model.FreePages()[g]);  // sharing needs no free page
            }
            ASSERT_EQ(0u, model.cache.edits().size());
            reorders += parents.size() > 1;
            break;
          }
          default: {
            std::vector<uint32_t> batch;
            for (uint32_t k = 0; k < 4; ++k) {
              if (random() % 2 == 0) batch.push_back((s + k) % 4);
            }
            const uint32_t n = 1 + random() % 5;
            size_t longest = 0;
            for (uint32_t b : batch) longest = std::max(longest, model.lists[b].size());
            const Status status = model.Append(batch, n);
            ASSERT_TRUE(status == Status::kOk || status == Status::kContextFull);
            // Without kv_tokens only a full sequence can fail.
            if (kv_tokens == 0) {
              ASSERT_EQ(longest + n > 48, status != Status::kOk);
            }
            if (status != Status::kOk) {
              ++full;
              model.Clear(s);
            }
          }
        }
        ASSERT_NO_FATAL_FAILURE(model.Check());
      }
      EXPECT_GT(full, 20u);
      EXPECT_GT(forks, 20u);
      EXPECT_GT(shifts, 20u);
      EXPECT_GT(reorders, 100u);
      for (uint32_t s = 0; s < 4; ++s) model.Clear(s);
      for (size_t g = 0; g < shapes[shape].size(); ++g) {
        EXPECT_EQ(0u, model.cache.pool(static_cast<uint32_t>(g)).n_used());
      }
    }
  }
}

// A pool of active pages sized for the residual and one run is sufficient at every length. After a
// rewind quantised pages are written again.
TEST(KvCache_Exhaustive, Quantising_EveryResidualPageAndRunLength) {
  for (uint32_t page : {1u, 2u, 4u, 8u}) {
    for (uint32_t window : {0u, 7u}) {
      for (uint32_t residual = 0; residual <= 20; ++residual) {
        for (uint32_t rows = 1; rows <= 7; ++rows) {
          Model model({{{page, window, 0, residual}}, 32, rows, 1, 0});
          for (uint32_t length = 0; length + rows <= 32; length += rows) {
            ASSERT_EQ(Status::kOk, model.Append({0}, rows));
            ASSERT_NO_FATAL_FAILURE(model.Check());
          }
          ASSERT_EQ(Status::kOk, model.Rewind(0, model.cache.FirstRewindPosition(0)));
          while (model.lists[0].size() < 32) ASSERT_EQ(Status::kOk, model.Append({0}, 1));
          ASSERT_NO_FATAL_FAILURE(model.Check());
        }
      }
    }
  }
}

// A fork needs no page; the first write copies the one partial page.
TEST(KvCache_Fork, FirstWrite_CopiesOnePage) {
  Model model({{{4, 0, 0}}, 16, 6, 3, 0});
  ASSERT_EQ(Status::kOk, model.Append({0}, 6));
  ASSERT_EQ(Status::kOk, model.Fork(0, 1));
  ASSERT_EQ(Status::kOk, model.Fork(0, 2));
  EXPECT_EQ(2u, model.cache.pool(0).n_used());
  ASSERT_EQ(Status::kOk, model.Append({0, 1, 2}, 1));
  // The last of the three writers owns the page.
  EXPECT_EQ(4u, model.cache.pool(0).n_used());
  model.Check();
}

// Every map from four sequences to four: permutations with every cycle type, and repeats.
TEST(KvCache_Reorder, EveryMap_FollowsTheLists) {
  for (uint32_t map = 0; map < 256; ++map) {
    Model model({{{4, 0, 0}, {2, 5, 0}}, 16, 16, 4, 0});
    for (uint32_t s = 0; s < 4; ++s) ASSERT_EQ(Status::kOk, model.Append({s}, 3 * s + 1));
    ASSERT_EQ(Status::kOk,
              model.Reorder(0, {map & 3, (map >> 2) & 3, (map >> 4) & 3, (map >> 6) & 3}));
    ASSERT_NO_FATAL_FAILURE(model.Check()) << map;
    ASSERT_EQ(Status::kOk, model.Append({0, 1, 2, 3}, 2));
    ASSERT_NO_FATAL_FAILURE(model.Check()) << map;
  }
}

TEST(KvCache_Reorder, ReservedTokensOfAParent_AreLetGo) {
  Model model({{{4, 0, 0}}, 16, 16, 2, 0});
  ASSERT_EQ(Status::kOk, model.Append({0}, 4));
  const Growth growth{0, 8};
  ASSERT_EQ(Status::kOk, model.cache.Reserve(Span<const Growth>(&growth, 1)));
  ASSERT_EQ(Status::kOk, model.Reorder(0, {0, 0}));
  EXPECT_EQ(1u, model.cache.pool(0).n_used());
  model.Check();
}

TEST(KvCache_Reorder, NumbersThatAreNoSequences_ChangeNothing) {
  Model model({{{4, 0, 0}}, 16, 16, 2, 0});
  ASSERT_EQ(Status::kOk, model.Append({0}, 4));
  EXPECT_EQ(Status::kBadArgument, model.Reorder(1, {0, 0}));
  EXPECT_EQ(Status::kBadArgument, model.Reorder(0, {0, 2}));
  EXPECT_EQ(Status::kBadArgument, model.Reorder(3, {}));
  EXPECT_EQ(Status::kOk, model.Reorder(2, {}));
  model.Check();
}

// If one pool is too small, no pool loses a page.
TEST(KvCache_Reserve, PoolTooSmall_TakesNoPage) {
  Model model({{{8, 0, 0}, {2, 0, 0}}, 16, 16, 2, 18});
  ASSERT_EQ(Status::kOk, model.Append({0}, 15));
  const uint32_t used0 = model.cache.pool(0).n_used(), used1 = model.cache.pool(1).n_used();
  ASSERT_EQ(Status::kOk, model.Fork(0, 1));
  ASSERT_EQ(Status::kContextFull, model.Append({0, 1}, 2));
  EXPECT_EQ(used0, model.cache.pool(0).n_used());
  EXPECT_EQ(used1, model.cache.pool(1).n_used());
  EXPECT_EQ(0u, model.cache.edits().size());
  model.Check();
}

TEST(KvCache_Reserve, WithoutCommit_CanBeRepeated) {
  Model model({{{4, 0, 0}}, 8, 8, 1, 0});
  const Growth all{0, 8}, more{0, 9};
  ASSERT_EQ(Status::kOk, model.cache.Reserve(Span<const Growth>(&all, 1)));
  ASSERT_EQ(Status::kOk, model.cache.Reserve(Span<const Growth>(&all, 1)));
  EXPECT_EQ(2u, model.cache.tables(0)[0].n_pages);
  EXPECT_EQ(Status::kContextFull, model.cache.Reserve(Span<const Growth>(&more, 1)));
  model.Check();
}

// The pool of a window does not grow with the context.
TEST(KvCache_Window, TablePages_CoverWindowAndRunOnly) {
  CacheGroup group;
  group.page_tokens = 32;
  group.window = 64;
  EXPECT_EQ(7u, TablePages(group, 1u << 20, 128));  // 63 + 128 tokens starting at any offset
  EXPECT_EQ(2u, TablePages(group, 64, 128));
  group.window = 1;
  EXPECT_EQ(1u, TablePages(group, 1000, 1));
}

// TokensBeforeQuantising() tokens quantise nothing in between; the next token does.
TEST(KvCache_TokensBeforeQuantising, EndWhereAReservationQuantises) {
  Model model({{{8, 0, 0, 16}, {4, 20, 0, 10}, {8, 0, 0}}, 64, 4, 1, 0});
  KvCache& cache = model.cache;
  const Growth one{0, 1};
  const Span<const Growth> growth(&one, 1);
  uint32_t n_ends = 0;
  while (cache.length(0) < 64) {
    const uint32_t n = cache.TokensBeforeQuantising(0);
    ASSERT_GT(n, 0u);
    for (uint32_t i = 0; i < n && cache.length(0) < 64; ++i) {
      ASSERT_EQ(Status::kOk, cache.Reserve(growth));
      // The pages that the first token quantises are already old at this length.
      const bool may_quantise = i == 0 && n_ends > 0;
      EXPECT_EQ(may_quantise, !cache.edits().empty()) << cache.length(0) << ", " << i;
      cache.ClearEdits();
      cache.Commit(growth);
    }
    ++n_ends;
  }
  // Pages end at 24, 32, ... after a residual of 16, and at 14, 18, ... after one of 10.
  EXPECT_EQ(19u, n_ends);
}

}  // namespace
}  // namespace arn
