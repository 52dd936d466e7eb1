#include "runtime/cache/kv_layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kv_rows.h"

namespace arn {
namespace {

TEST(KvLayout_Plan, Blocks_FollowEachOtherAlignedAndHoldTheirElements) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kInt8}) {
    for (uint32_t head_dim : {2u, 8u, 80u, 96u, 128u}) {
      for (uint32_t heads : {1u, 3u, 7u}) {
        for (uint32_t page : {8u, 32u, 1024u}) {
          Layout layout;
          Diag diag;
          KvGroup g;
          KvOptions options;
          options.k_type = options.v_type = dtype;
          options.page_tokens = page;
          options.n_pages = 13;
          ASSERT_EQ(Status::kOk, PlanKvGroup(5, heads, head_dim, options, &layout, &g, &diag));
          const uint64_t elements = uint64_t{heads} * page * head_dim * ElementBytes(dtype);
          const uint64_t scales = dtype == DType::kInt8 ? uint64_t{heads} * page * 4 : 0;
          EXPECT_GE(g.open.v_offset, elements);
          EXPECT_GE(g.open.k_scale_offset, g.open.v_offset + elements);
          EXPECT_GE(g.open.v_scale_offset, g.open.k_scale_offset + scales);
          EXPECT_GE(g.open.layer_bytes, g.open.v_scale_offset + scales);
          for (uint64_t offset : {g.open.v_offset, g.open.k_scale_offset, g.open.v_scale_offset,
                                  g.open.layer_bytes}) {
            EXPECT_EQ(0u, offset % kSliceAlign);
          }
          EXPECT_EQ(5 * g.open.layer_bytes, g.open.page_bytes);
          EXPECT_EQ(13u, g.open.n_pages);
          EXPECT_EQ(g.open.n_pages * g.open.page_bytes, g.open.pool.bytes);
          EXPECT_EQ(Region::kKv, g.open.pool.region);
        }
      }
    }
  }
}

// The sizes of a model that people know: 30 layers, 3 kv heads of 64, 2048 tokens.
TEST(KvLayout_Plan, KnownGeometry_HasItsKnownBytes) {
  Layout layout;
  Diag diag;
  KvGroup g;
  KvOptions options;
  options.n_pages = 2048 / 32;
  ASSERT_EQ(Status::kOk, PlanKvGroup(30, 3, 64, options, &layout, &g, &diag));
  // Per token and layer: 2 * 3 * (64 + 4) bytes.
  EXPECT_EQ(uint64_t{2048} * 30 * 2 * 3 * 68, g.open.pool.bytes);
}

TEST(KvLayout_Plan, OtherTypes_AreRefusedByName) {
  Layout layout;
  Diag diag;
  KvGroup g;
  KvOptions options;
  options.v_type = DType::kBf16;
  EXPECT_EQ(Status::kUnsupported, PlanKvGroup(1, 1, 8, options, &layout, &g, &diag));
  EXPECT_NE(nullptr, strstr(diag.text(), "bf16"));
}

// A page of a damaged state may hold NaN: it takes the least value and leaves its neighbours alone.
TEST(KvRows_NotANumber, Row_KeepsItsOtherValues) {
  KvGroup group;
  group.head_dim = 4;
  group.page_tokens = 8;
  group.group_size = 4;
  const float x[] = {1.0f, std::nanf(""), -0.5f, 0.25f};
  std::byte values[32] = {};
  float scales[8] = {};
  KvHeadBlock open;
  open.values = values;
  open.scales = scales;
  open.type = DType::kInt8;
  StoreKvRow(x, group, 0, open);
  EXPECT_EQ(1.0f / 127.0f, scales[0]);
  const int expected[] = {127, -127, -64, 32};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(expected[i], static_cast<int8_t>(values[i])) << i;

  const KvRange range = RangeOf(-0.5f, 1.0f, 4);
  uint16_t pairs[16] = {};
  pairs[0] = range.scale;
  pairs[1] = range.least;
  KvHeadBlock sealed;
  sealed.values = values;
  sealed.scales = pairs;
  sealed.bits = 4;
  StoreSealedRow(x, group, /*keys=*/false, 0, sealed);
  float back[4] = {};
  LoadKvRow(group, /*keys=*/false, sealed, 0, back);
  const float near[] = {1.0f, -0.5f, -0.5f, 0.25f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(near[i], back[i], 0.051) << i;
}

}  // namespace
}  // namespace arn
