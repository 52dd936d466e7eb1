#include "runtime/cache/sequence_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace arn {
namespace {

struct Fixture {
  Fixture(std::vector<KvGroup> g, uint32_t context) : groups(std::move(g)) {
    Layout layout;
    SequenceCachePlan plan;
    EXPECT_EQ(Status::kOk, PlanSequenceCache({groups.data(), groups.size()}, &layout, &plan));
    bytes.resize(layout.RegionBytes(Region::kConstants) + 64);
    memory.region[static_cast<uint32_t>(Region::kConstants)] = {bytes.data(), bytes.size()};
    cache.Init({groups.data(), groups.size()}, plan, memory, context);
  }
  std::vector<KvGroup> groups;
  std::vector<std::byte> bytes;
  Memory memory;
  SequenceCache cache;
};

KvGroup Group(uint32_t page_tokens, uint32_t context, uint64_t page_bytes) {
  KvGroup group;
  group.page_tokens = page_tokens;
  group.n_pages = (context + page_tokens - 1) / page_tokens;
  group.page_bytes = page_bytes;
  return group;
}

// Every context, page size and chunking, against a plain count: a position always has a page of its
// own, and no page is in two places.
TEST(SequenceCache_Exhaustive, SmallSizes_FollowAPlainList) {
  for (uint32_t context = 1; context <= 20; ++context) {
    for (uint32_t page : {1u, 2u, 4u, 8u}) {
      for (uint32_t chunk = 1; chunk <= 7; ++chunk) {
        Fixture f({Group(page, context, 100), Group(8, context, 7)}, context);
        for (int round = 0; round < 2; ++round) {
          uint32_t length = 0;
          while (length + chunk <= context) {
            ASSERT_EQ(Status::kOk, f.cache.Reserve(chunk));
            ASSERT_EQ(length, f.cache.length());
            f.cache.Commit(chunk);
            length += chunk;
            const PageTable& table = f.cache.tables()[0];
            ASSERT_EQ((length + page - 1) / page, table.n_pages);
            std::set<uint32_t> seen(table.pages, table.pages + table.n_pages);
            ASSERT_EQ(table.n_pages, seen.size());
            ASSERT_LT(*seen.rbegin(), f.groups[0].n_pages);
            ASSERT_EQ(table.n_pages * 100u + (length + 7) / 8 * 7u, f.cache.UsedBytes());
          }
          ASSERT_EQ(Status::kContextFull, f.cache.Reserve(chunk));
          ASSERT_EQ(length, f.cache.length());
          f.cache.Reset();
          ASSERT_EQ(0u, f.cache.UsedBytes());
        }
      }
    }
  }
}

TEST(SequenceCache_Reserve, WithoutCommit_CanBeRepeated) {
  Fixture f({Group(4, 8, 1)}, 8);
  ASSERT_EQ(Status::kOk, f.cache.Reserve(8));
  ASSERT_EQ(Status::kOk, f.cache.Reserve(8));
  EXPECT_EQ(2u, f.cache.tables()[0].n_pages);
  EXPECT_EQ(Status::kContextFull, f.cache.Reserve(9));
}

// A context that is no multiple of the page size ends where it says, not where its last page does.
TEST(SequenceCache_Reserve, ContextInsideAPage_IsRespected) {
  Fixture f({Group(8, 10, 1)}, 10);
  ASSERT_EQ(Status::kOk, f.cache.Reserve(10));
  f.cache.Commit(10);
  EXPECT_EQ(Status::kContextFull, f.cache.Reserve(1));
}

}  // namespace
}  // namespace arn
