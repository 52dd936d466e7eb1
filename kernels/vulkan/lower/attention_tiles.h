// Tiles of attention of many rows (shaders/attention_tile.comp): a workgroup has several rows and
// the query heads that share a key and value head, so that it reads keys and values once for all
// of them.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn::vulkan {

struct AttentionVariant {
  const char* name = "";
  uint32_t lanes = 0;  // invocations per workgroup
  uint32_t pairs = 0;  // of a row and a query head, per workgroup; 0: each row and query head by
                       // itself (shaders/attention.comp)
};
inline constexpr uint32_t kAttentionVariants = 3;
// The first two run on every device, the last one where workgroups may have 256 invocations.
inline constexpr uint32_t kAttentionOfRows = 0, kAttentionOfTiles = 1, kAttentionOfLargeTiles = 2;
const AttentionVariant& AttentionVariantOf(uint32_t index);

// The shader's constants.
struct AttentionTile {
  uint32_t lanes = 0, pairs = 0, keys = 0;  // pairs = 0: each row by itself
  uint32_t rows = 0, heads = 0;             // rows * heads <= pairs
  bool keeps_queries = false;               // in shared memory
  uint32_t groups_x = 0;                    // workgroups per tile of rows
};
// Returns the tile of a kind of attention: at most 64 rows, and at most shared_memory bytes, of
// Device::kMinSharedMemory and more. Heads of more than 256 channels have none.
AttentionTile AttentionTileOf(const AttentionKind& kind, uint32_t variant, uint32_t shared_memory);
// Shared memory that the shader takes for a tile, in bytes.
uint32_t SharedBytesOf(const AttentionTile& tile, uint32_t head_dim);

}  // namespace arn::vulkan
