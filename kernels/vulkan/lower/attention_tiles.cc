#include "kernels/vulkan/lower/attention_tiles.h"

#include <bit>

#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr AttentionVariant kVariants[kAttentionVariants] = {
    {"rows", 64, 0},
    {"tiles-64", 128, 64},
    {"tiles-256", 256, 256},
    {"matrices-64", 0, 64},
};

constexpr uint32_t kMaxRows = 64, kMaxKeys = 32, kUsualKeys = 16, kMinPairs = 64, kMaxHeadDim = 256;
// Sums that an invocation has in registers, at most, where there are more pairs than kMinPairs.
constexpr uint32_t kMaxSums = 64;
// attention_coop.comp pads heads to this, and has as many keys at least.
constexpr uint32_t kMatrixDim = 16;

// Heads, rows and workgroups of a tile of `pairs`.
void SetPairs(const AttentionKind& kind, AttentionTile* tile) {
  const uint32_t heads = kind.n_heads / kind.n_kv_heads;
  const auto splits = static_cast<uint32_t>(CeilDiv(heads, tile->pairs));
  tile->heads = static_cast<uint32_t>(CeilDiv(heads, splits));
  tile->rows = Min(kMaxRows, tile->pairs / tile->heads);
  tile->groups_x = kind.n_kv_heads * splits;
}

// attention_coop.comp: keys or values, strips, scales, and what the parts of a pair find.
uint32_t MatrixBytesOf(const AttentionTile& tile, uint32_t head_dim) {
  const auto dim = static_cast<uint32_t>(AlignUp(head_dim, kMatrixDim));
  const uint32_t strip = Max(tile.keys, tile.keys / 2 + tile.coop.n) + 4;
  const uint32_t words =
      tile.keys * (dim / 2 + 4) + tile.pairs * strip + 3 * tile.keys + 2 * tile.lanes;
  return (words + 2 * tile.pairs) * 4;
}

}  // namespace

const AttentionVariant& AttentionVariantOf(uint32_t index) { return kVariants[index]; }

uint32_t SharedBytesOf(const AttentionTile& tile, uint32_t head_dim) {
  if (tile.coop.m != 0) return MatrixBytesOf(tile, head_dim);
  const auto quads = static_cast<uint32_t>(CeilDiv(head_dim, 4));
  const uint32_t groups = tile.pairs / 4;
  const uint32_t values = tile.keys * (quads + 1), scores = tile.keys * (groups + 1);
  const uint32_t queries = 1 + (tile.keeps_queries ? tile.pairs * quads : 0);
  return (values + scores + groups + queries) * 16 + 2 * tile.pairs * 4;
}

AttentionTile AttentionTileOf(const AttentionKind& kind, uint32_t variant, uint32_t shared_memory) {
  const AttentionVariant& v = kVariants[variant];
  const uint32_t dim = kind.head_dim, heads = kind.n_heads / kind.n_kv_heads;
  AttentionTile tile;
  if (v.pairs == 0 || dim > kMaxHeadDim) return tile;
  tile.pairs = Min(v.pairs, Max(std::bit_ceil(kMaxRows * heads), kMinPairs));
  while (tile.pairs > kMinPairs && tile.pairs * dim > kMaxSums * v.lanes) tile.pairs /= 2;
  tile.keys = kUsualKeys;
  tile.keeps_queries = true;
  tile.keeps_queries = SharedBytesOf(tile, dim) <= shared_memory;
  tile.keys = kMaxKeys;
  while (SharedBytesOf(tile, dim) > shared_memory) tile.keys /= 2;
  tile.lanes = Min(v.lanes, 2 * tile.pairs);
  while (tile.keys * tile.pairs < 4 * tile.lanes) tile.lanes /= 2;
  SetPairs(kind, &tile);
  return tile;
}

AttentionTile MatrixTileOf(const AttentionKind& kind, const MatrixTraits& traits,
                           uint32_t shared_memory) {
  const CoopShape& coop = traits.coop;
  if (coop.m == 0 || traits.subgroup_size % coop.m != 0 || traits.subgroup_size == 0 ||
      kind.head_dim > kMaxHeadDim) {
    return {};
  }
  AttentionTile tile;
  tile.coop = coop;
  tile.pairs = kVariants[kAttentionOfMatrices].pairs;
  while (tile.pairs / coop.m * traits.subgroup_size > traits.max_lanes) tile.pairs /= 2;
  tile.lanes = tile.pairs / coop.m * traits.subgroup_size;
  if (tile.lanes == 0) return {};
  tile.keys = kMaxKeys;
  if (SharedBytesOf(tile, kind.head_dim) > shared_memory) tile.keys = kMatrixDim;
  // Invocations of a pair share its words of two keys evenly.
  const uint32_t parts = traits.subgroup_size / coop.m;
  if (SharedBytesOf(tile, kind.head_dim) > shared_memory || tile.keys / 2 % parts != 0) return {};
  SetPairs(kind, &tile);
  return tile;
}

}  // namespace arn::vulkan
