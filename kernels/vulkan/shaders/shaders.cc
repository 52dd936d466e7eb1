#include "kernels/vulkan/shaders/shaders.h"

namespace arn::vulkan {
namespace {

struct EmbeddedSpirv {
  const uint32_t* words;
  size_t n;
};

// kSpirv: per shader, in enum order: without and with subgroups, then the same with dot products.
#include "kernels/vulkan/shaders/embedded_shaders.inc"

static_assert(sizeof kSpirv / sizeof kSpirv[0] == kShaderCount);

}  // namespace

Span<const uint32_t> SpirvOf(Shader shader, ShaderVariant variant) {
  const EmbeddedSpirv& spirv = kSpirv[static_cast<uint32_t>(shader)][IndexOf(variant)];
  return {spirv.words, spirv.n};
}

}  // namespace arn::vulkan
