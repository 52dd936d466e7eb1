#include "platform/base/layout.h"

#include <gtest/gtest.h>

#include <string>

namespace arn {
namespace {

TEST(Layout_Add, Slices_AreAlignedAndApart) {
  Layout layout;
  uint64_t end = 0;
  for (uint64_t bytes : {1u, 64u, 65u, 0u, 1000u}) {
    Result<Slice> slice = layout.Add(Region::kIo, bytes);
    ASSERT_TRUE(slice.ok());
    EXPECT_EQ(0u, slice.value().offset % kSliceAlign);
    EXPECT_GE(slice.value().offset, end);
    EXPECT_EQ(bytes, slice.value().bytes);
    end = slice.value().offset + bytes;
  }
  EXPECT_EQ(0u, layout.RegionBytes(Region::kIo) % kRegionAlign);
  EXPECT_GE(layout.RegionBytes(Region::kIo), end + kOverreadBytes);
  EXPECT_EQ(0u, layout.RegionBytes(Region::kKv));
}

TEST(Layout_Add, AbsurdSizes_AreOutOfMemory) {
  Layout layout;
  EXPECT_EQ(Status::kOutOfMemory, layout.Add(Region::kKv, UINT64_MAX).status());
  EXPECT_EQ(Status::kOutOfMemory, layout.AddArray(Region::kKv, UINT64_MAX, 2).status());
  ASSERT_TRUE(layout.Add(Region::kKv, uint64_t{1} << 56).ok());
  EXPECT_EQ(Status::kOutOfMemory, layout.Add(Region::kKv, 1).status());
}

TEST(Layout_Add, OddAlignment_IsInternal) {
  Layout layout;
  EXPECT_EQ(Status::kInternal, layout.Add(Region::kKv, 1, 48).status());
}

TEST(Layout_RegionName, EveryRegion_HasItsOwn) {
  for (uint32_t i = 0; i < kRegionCount; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      EXPECT_NE(std::string(RegionName(static_cast<Region>(i))),
                RegionName(static_cast<Region>(j)));
    }
  }
}

}  // namespace
}  // namespace arn
