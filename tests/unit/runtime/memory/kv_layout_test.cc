#include "runtime/cache/kv_layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kv/kv_rows.h"

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
          EXPECT_GE(g.active.v_offset, elements);
          EXPECT_GE(g.active.k_scale_offset, g.active.v_offset + elements);
          EXPECT_GE(g.active.v_scale_offset, g.active.k_scale_offset + scales);
          EXPECT_GE(g.active.layer_bytes, g.active.v_scale_offset + scales);
          for (uint64_t offset : {g.active.v_offset, g.active.k_scale_offset,
                                  g.active.v_scale_offset, g.active.layer_bytes}) {
            EXPECT_EQ(0u, offset % kSliceAlign);
          }
          EXPECT_EQ(5 * g.active.layer_bytes, g.active.page_bytes);
          EXPECT_EQ(13u, g.active.n_pages);
          EXPECT_EQ(g.active.n_pages * g.active.page_bytes, g.active.pool.bytes);
          EXPECT_EQ(Region::kKv, g.active.pool.region);
        }
      }
    }
  }
}

TEST(KvLayout_Plan, ByLayer_EachLayerHasThePartsOfAllPagesInWholeOsPages) {
  Layout layout;
  Diag diag;
  KvGroup g;
  KvOptions options;
  options.n_pages = 13;
  options.n_quantised_pages = 7;
  options.k_bits = options.v_bits = 4;
  options.by_layer = true;
  ASSERT_EQ(Status::kOk, PlanKvGroup(5, 3, 64, options, &layout, &g, &diag)) << diag.text();
  for (const KvPages* pages : {&g.active, &g.quantised}) {
    EXPECT_EQ(5 * pages->layer_bytes, pages->page_bytes);
    EXPECT_EQ(pages->layer_bytes, pages->page_stride);
    EXPECT_EQ(0u, pages->layer_stride % kRegionAlign);
    EXPECT_GE(pages->layer_stride, pages->n_pages * pages->layer_bytes);
    EXPECT_LT(pages->layer_stride, pages->n_pages * pages->layer_bytes + kRegionAlign);
    EXPECT_EQ(5 * pages->layer_stride, pages->pool.bytes);
    ASSERT_EQ(5u, pages->n_pieces());
    for (uint32_t layer = 0; layer < 5; ++layer) {
      const Slice piece = pages->Piece(6, layer);
      EXPECT_EQ(pages->pool.offset + pages->At(6, layer), piece.offset);
      EXPECT_EQ(pages->layer_bytes, piece.bytes);
    }
  }
  options.by_layer = false;
  ASSERT_EQ(Status::kOk, PlanKvGroup(5, 3, 64, options, &layout, &g, &diag)) << diag.text();
  ASSERT_EQ(1u, g.active.n_pieces());
  EXPECT_EQ(g.active.page_bytes, g.active.Piece(6, 0).bytes);
  EXPECT_EQ(g.active.pool.offset + 6 * g.active.page_bytes, g.active.Piece(6, 0).offset);
}

// A published geometry: 30 layers, 3 KV heads of 64, 2048 tokens.
TEST(KvLayout_Plan, KnownGeometry_HasItsKnownBytes) {
  Layout layout;
  Diag diag;
  KvGroup g;
  KvOptions options;
  options.n_pages = 2048 / 32;
  ASSERT_EQ(Status::kOk, PlanKvGroup(30, 3, 64, options, &layout, &g, &diag));
  // Per token and layer: 2 * 3 * (64 + 4) bytes.
  EXPECT_EQ(uint64_t{2048} * 30 * 2 * 3 * 68, g.active.pool.bytes);
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

// A page of a damaged state may hold NaN. It becomes the smallest value and leaves its neighbours
// intact.
TEST(KvRows_NotANumber, Row_KeepsItsOtherValues) {
  KvGroup group;
  group.head_dim = 4;
  group.page_tokens = 8;
  group.group_size = 4;
  const float x[] = {1.0f, std::nanf(""), -0.5f, 0.25f};
  std::byte values[32] = {};
  float scales[8] = {};
  KvHeadBlock active;
  active.values = values;
  active.scales = scales;
  active.type = DType::kInt8;
  StoreKvRow(x, group, 0, active);
  EXPECT_EQ(1.0f / 127.0f, scales[0]);
  const int expected[] = {127, -127, -64, 32};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(expected[i], static_cast<int8_t>(values[i])) << i;

  const KvRange range = RangeOf(-0.5f, 1.0f, 4);
  uint16_t pairs[16] = {};
  pairs[0] = range.scale;
  pairs[1] = range.least;
  KvHeadBlock quantised;
  quantised.values = values;
  quantised.scales = pairs;
  quantised.bits = 4;
  StoreQuantisedRow(x, group, /*keys=*/false, 0, quantised);
  float back[4] = {};
  LoadKvRow(group, /*keys=*/false, quantised, 0, back);
  const float near[] = {1.0f, -0.5f, -0.5f, 0.25f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(near[i], back[i], 0.051) << i;
}

}  // namespace
}  // namespace arn
