// The shaders in the library: SPIR-V made from shaders/*.comp by the build.
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
  kUnfold,
  kAddPositions,
};
inline constexpr uint32_t kShaderCount = 19;

// How a shader was compiled: with subgroup operations or without, with integer dot products or
// without. Shaders without integer products ignore the latter.
struct ShaderVariant {
  bool uses_subgroups = false;
  bool uses_dot = false;
};
Span<const uint32_t> SpirvOf(Shader shader, ShaderVariant variant);

}  // namespace arn::vulkan
