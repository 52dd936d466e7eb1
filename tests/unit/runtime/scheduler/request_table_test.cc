#include "runtime/scheduler/request_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/scheduler/event_ring.h"

namespace arn {
namespace {

class RequestTableTest : public testing::Test {
 protected:
  RequestTableTest() : records_(3), order_(3) {
    table_.Init({records_.data(), records_.size()}, {order_.data(), order_.size()});
  }
  std::vector<uint64_t> Ids() const {
    std::vector<uint64_t> ids;
    for (uint32_t i = 0; i < table_.size(); ++i) ids.push_back(table_.At(i).id);
    return ids;
  }

  std::vector<RequestRecord> records_;
  std::vector<uint32_t> order_;
  RequestTable table_;
};

using RequestIds = std::vector<uint64_t>;

TEST_F(RequestTableTest, KeepsTheOrderOfArrival) {
  for (int i = 0; i < 3; ++i) ASSERT_NE(nullptr, table_.Add({}));
  EXPECT_EQ((RequestIds{1, 2, 3}), Ids());
  table_.Remove(2);
  EXPECT_EQ((RequestIds{1, 3}), Ids());
  ASSERT_NE(nullptr, table_.Add({}));
  EXPECT_EQ((RequestIds{1, 3, 4}), Ids());
  table_.Remove(1);
  table_.Remove(4);
  EXPECT_EQ(RequestIds{3}, Ids());
  EXPECT_EQ(nullptr, table_.Find(1));
  EXPECT_EQ(3u, table_.Find(3)->id);
}

TEST_F(RequestTableTest, Full_TakesNoMore) {
  for (int i = 0; i < 3; ++i) ASSERT_NE(nullptr, table_.Add({}));
  EXPECT_EQ(nullptr, table_.Add({}));
  EXPECT_EQ((RequestIds{1, 2, 3}), Ids());
  table_.Remove(3);
  RequestRecord* record = table_.Add({});
  ASSERT_NE(nullptr, record);
  EXPECT_EQ(4u, record->id) << "a number is never used again";
  EXPECT_EQ(RequestPhase::kWaiting, record->phase);
  EXPECT_EQ(0u, record->n_tokens);
}

TEST(EventRing, GivesBackInOrder_RoundItsEnd) {
  std::vector<RequestEvent> memory(3);
  EventRing ring;
  ring.Init({memory.data(), memory.size()});
  uint64_t put = 0, taken = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 2; ++i) {
      RequestEvent event;
      event.request = ++put;
      ring.Put(event);
    }
    EXPECT_EQ(2u, ring.size());
    while (ring.size() != 0) EXPECT_EQ(++taken, ring.Take().request);
  }
  EXPECT_EQ(10u, taken);
}

}  // namespace
}  // namespace arn
