// The Vulkan backend: a program recorded into command buffers once and replayed (docs/vulkan.md).
#pragma once

#include "kernels/backend.h"
#include "platform/base/span.h"

namespace arn {

const Backend* VulkanBackend();

// The rest is for tests.
namespace vulkan {

// The same backend held to what lesser devices have.
enum class Restriction : uint8_t {
  kNone,
  kSharedMemory,  // reductions without subgroup operations, no integer dot products;
                  // and attention shared out in short segments
  kStaged,        // the host sees no device memory
};
const Backend* RestrictedBackend(Restriction restriction);

// The same backend whose products all take the variants of an index (product_variants.h), as far as
// the device has what they need; below kMostVariants.
inline constexpr uint32_t kMostVariants = 7;
const Backend* VariantBackend(uint32_t index);

// Copies Region::kActivations, as it lies on the device.
Status ReadActivations(void* state, Span<std::byte> to);
Status WriteActivations(void* state, Span<const std::byte> from);
// Makes f32 [vocab] the logits that the next token is chosen from.
Status WriteLogits(void* state, Span<const float> row);

// How often the driver has asked for host memory, and how many pieces it holds.
struct DriverMemory {
  uint64_t n_calls = 0;
  int64_t n_live = 0;
};
DriverMemory DriverMemoryOf(void* state);

// The functions that a state calls, which a test may replace by others (vk_api.h).
struct Api;
Api* ApiOf(void* state);

}  // namespace vulkan
}  // namespace arn
