#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

TEST(OpTableTest, Rows_AreInTheOrderOfOpAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_EQ(op, ContractOf(op).op) << i;
    EXPECT_TRUE(names.insert(OpName(op)).second) << OpName(op);
  }
}

// An op that is possible nowhere, or that touches no value, is a row with a mistake.
TEST(OpTableTest, Rows_SayWhereTheOpIsPossibleAndThatItHasAValue) {
  for (uint32_t i = 0; i < kOpCount; ++i) {
    const OpContract& op = ContractOf(static_cast<Op>(i));
    EXPECT_NE(0u, op.traits & (kInEncoder | kInDecoder)) << op.name;
    EXPECT_NE(0u, op.traits & (kHasIn | kHasOut)) << op.name;
  }
}

}  // namespace
}  // namespace arn
