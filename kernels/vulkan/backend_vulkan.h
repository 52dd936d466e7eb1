// Vulkan backend: records a program into command buffers once and replays them (docs/vulkan.md).
#pragma once

#include "kernels/contract/backend.h"
#include "platform/base/span.h"

namespace arn {

const Backend* VulkanBackend();

// Everything below is for tests.
namespace vulkan {

// Returns the same backend restricted to the features of weaker devices.
enum class Restriction : uint8_t {
  kNone,
  kSharedMemory,  // reductions without subgroup operations, no integer dot products; attention of
                  // each row by itself, split into short segments; no steps share dispatches
  kStaged,        // device memory is not mapped, and the driver picks the subgroup size
  kTeams,   // of a device with large subgroups: several in each workgroup that ends with a norm;
            // attention split into short segments
  kCopied,  // device memory is mapped, and imports none of the host's
  kRanges,  // activations of encoders in bindings of 128 KiB: in ranges of rows, if they are larger
};
const Backend* RestrictedBackend(Restriction restriction);

// Returns the same backend with all matmuls forced to variant `index` (matmul_variants.h), if the
// device supports it. index < kMostVariants.
inline constexpr uint32_t kMostVariants = 11;
const Backend* VariantBackend(uint32_t index);

// Returns the same backend with attention of many rows forced to variant `index`
// (attention_tiles.h). index < kAttentionVariants; the device must have its workgroup size.
const Backend* AttentionBackend(uint32_t index);

// Copy Region::kActivations from and to the device.
Status ReadActivations(void* state, Span<std::byte> to);
Status WriteActivations(void* state, Span<const std::byte> from);
// Sets the logits, f32 [vocab], from which the next token is sampled.
Status WriteLogits(void* state, Span<const float> row);

// Bytes of the buffers that the state has allocated on the device.
uint64_t AllocatedBytesOf(void* state);

// Host allocations of the driver: total calls, and blocks currently allocated.
struct DriverMemory {
  uint64_t n_calls = 0;
  int64_t n_live = 0;
};
DriverMemory DriverMemoryOf(void* state);

// Returns the state's table of Vulkan functions. Tests may replace entries (vk_api.h).
struct Api;
Api* ApiOf(void* state);

}  // namespace vulkan
}  // namespace arn
