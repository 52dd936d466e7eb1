#include "runtime/memory/activation_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/model/decoder_program.h"

namespace arn {
namespace {

// Values alive at the same step never share a byte, for any lifetimes.
TEST(ActivationPlan_Random, AliveTogether_NeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Value> values(1 + random() % kMaxValues);
    for (Value& value : values) {
      value.width = 1 + random() % 300;
      value.first_step = random() % 20;
      value.last_step = value.first_step + random() % 6;
    }
    const uint32_t rows = 1 + random() % 9;
    Layout layout;
    Program program;
    program.values = {values.data(), values.size()};
    program.max_rows = rows;
    ASSERT_EQ(Status::kOk, PlanActivations(program, &layout));
    for (size_t i = 0; i < values.size(); ++i) {
      const Value& a = values[i];
      EXPECT_EQ(Region::kActivations, a.slice.region);
      EXPECT_EQ(uint64_t{a.width} * rows * 4, a.slice.bytes);
      EXPECT_EQ(0u, a.slice.offset % kSliceAlign);
      EXPECT_LE(a.slice.offset + a.slice.bytes + kOverreadBytes,
                layout.RegionBytes(Region::kActivations));
      for (size_t j = 0; j < i; ++j) {
        const Value& b = values[j];
        const bool together = a.first_step <= b.last_step && b.first_step <= a.last_step;
        const bool overlap = a.slice.offset < b.slice.offset + b.slice.bytes &&
                             b.slice.offset < a.slice.offset + a.slice.bytes;
        EXPECT_FALSE(together && overlap) << round << ": " << i << " and " << j;
      }
    }
  }
}

TEST(ActivationPlan_Disjoint, Lifetimes_ShareBytes) {
  Value values[2];
  values[0].width = values[1].width = 1000;
  values[0].last_step = 1;
  values[1].first_step = 2;
  values[1].last_step = 3;
  Layout layout;
  Program program;
  program.values = values;
  program.max_rows = 10;
  ASSERT_EQ(Status::kOk, PlanActivations(program, &layout));
  EXPECT_EQ(values[0].slice.offset, values[1].slice.offset);
}

TEST(ActivationPlan_Views, LieAtTheStartOfWhatTheyView) {
  Value values[4];
  values[0].width = 100;
  values[1].width = 300;
  values[2].width = 40;
  values[2].view_of = 0;
  values[3].width = 299;
  values[3].view_of = 1;
  Layout layout, without_views;
  Program program;
  program.max_rows = 7;
  program.values = {values, 2};
  ASSERT_EQ(Status::kOk, PlanActivations(program, &without_views));
  program.values = values;
  ASSERT_EQ(Status::kOk, PlanActivations(program, &layout));
  EXPECT_EQ(without_views.RegionBytes(Region::kActivations),
            layout.RegionBytes(Region::kActivations));
  EXPECT_NE(values[0].slice.offset, values[1].slice.offset);
  EXPECT_EQ(values[0].slice.offset, values[2].slice.offset);
  EXPECT_EQ(40u * 7 * 4, values[2].slice.bytes);
  EXPECT_EQ(values[1].slice.offset, values[3].slice.offset);
  EXPECT_EQ(299u * 7 * 4, values[3].slice.bytes);
}

}  // namespace
}  // namespace arn
