// Counts what shaders do while they run: a Vulkan loader that adds counters to the SPIR-V of each
// shader module before the driver gets it. The counts are those of the executed instructions.
#pragma once

#include <cstdint>

#include "kernels/vulkan/shaders/shaders.h"

namespace arn::test {

// Bytes and products of all invocations so far; the buffer of binding 0 is left out.
struct ShaderCounts {
  uint32_t loaded = 0, stored = 0;
  uint32_t dots = 0;          // multiplications of OpDot of four elements
  uint32_t vector_fmas = 0;   // of fma() of f32 vectors of four
  uint32_t int_products = 0;  // of integer dot products
  uint32_t half_fmas = 0;     // of fma() of f16 vectors
};

// Devices that are opened while it exists count. At most one exists at a time, and at most one
// session uses it.
class CountingDevice {
 public:
  CountingDevice();
  ~CountingDevice();

  // Sets all counts to 0.
  void Reset();
  ShaderCounts Of(vulkan::Shader shader) const;
};

}  // namespace arn::test
