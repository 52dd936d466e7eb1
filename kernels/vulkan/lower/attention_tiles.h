// Tiles of attention of many rows (shaders/attention_tile.comp, attention_coop.comp): a workgroup
// has several rows and the query heads that share a key and value head, so that it reads keys and
// values once for all of them.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/vulkan/device/coop_shape.h"

namespace arn::vulkan {

struct AttentionVariant {
  const char* name = "";
  uint32_t lanes = 0;  // invocations per workgroup; 0: as many subgroups as it has matrices
  uint32_t pairs = 0;  // of a row and a query head, per workgroup; 0: each row and query head by
                       // itself (shaders/attention.comp)
};
inline constexpr uint32_t kAttentionVariants = 4;
// The first two run on every device, the third one where workgroups may have 256 invocations, the
// last one with f16 cooperative matrices, on pages that are not f32.
inline constexpr uint32_t kAttentionOfRows = 0, kAttentionOfTiles = 1, kAttentionOfLargeTiles = 2;
inline constexpr uint32_t kAttentionOfMatrices = 3;
const AttentionVariant& AttentionVariantOf(uint32_t index);

// The shader's constants.
struct AttentionTile {
  uint32_t lanes = 0, pairs = 0, keys = 0;  // pairs = 0: each row by itself
  uint32_t rows = 0, heads = 0;             // rows * heads <= pairs
  bool keeps_queries = false;               // in shared memory
  uint32_t groups_x = 0;                    // workgroups per tile of rows
  CoopShape coop;                           // of attention_coop.comp, or empty
};
// Returns the tile of a kind of attention: at most 64 rows, and at most shared_memory bytes, of
// Device::kMinSharedMemory and more. Heads of more than 256 channels have none.
AttentionTile AttentionTileOf(const AttentionKind& kind, uint32_t variant, uint32_t shared_memory);
// Properties of a device that attention_coop.comp depends on.
struct MatrixTraits {
  CoopShape coop;              // f16 x f16 -> f32; empty: none
  uint32_t subgroup_size = 0;  // of full subgroups; 0: there is no guarantee
  uint32_t max_lanes = 128;
};
// The same with cooperative matrices; none if the shape or the limits do not fit.
AttentionTile MatrixTileOf(const AttentionKind& kind, const MatrixTraits& traits,
                           uint32_t shared_memory);
// Shared memory that the shader takes for a tile, in bytes.
uint32_t SharedBytesOf(const AttentionTile& tile, uint32_t head_dim);

}  // namespace arn::vulkan
