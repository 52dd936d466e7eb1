// SPIR-V of the shaders, compiled from shaders/*.comp by the build and embedded in the library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn::vulkan {

enum class Shader : uint8_t {
  kEmbed,
  kRopeAngles,
  kNorm,
  kQuantize,
  kGemvFloat,
  kGemvInt,
  kGemmFloat,
  kGemmInt,
  kQkvRope,
  kAttention,
  kGatedAct,
  kKvEdit,
  kChoose,
  kRoute,
  kExperts,
  kConv,
  kScan,
  kIm2col,
  kAddPositions,
  kScaleRow,
  kMultiply,
  kColumns,
  kAddEmbeddings,
  kClamp,
  kPool,
  kAttentionTile,
  kLinearAttention,
  kGate,
  kGemmCoop,  // only with subgroups and without dot products; empty if glslc could not compile it
  kGemmHalf,  // only on devices with f16 arithmetic
  kHeadLinear,
  kAttentionCoop,  // as kGemmCoop
};
inline constexpr uint32_t kShaderCount = 32;

// Compilation variant of a shader: with or without subgroup operations, with or without integer dot
// products. uses_dot is ignored by shaders without integer matmuls.
struct ShaderVariant {
  bool uses_subgroups = false;
  bool uses_dot = false;
};
inline constexpr uint32_t kShaderVariants = 4;
constexpr uint32_t IndexOf(ShaderVariant variant) {
  return (variant.uses_subgroups ? 1 : 0) + (variant.uses_dot ? 2 : 0);
}
Span<const uint32_t> SpirvOf(Shader shader, ShaderVariant variant);

}  // namespace arn::vulkan
