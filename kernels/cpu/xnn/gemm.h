// The door to XNNPACK: its f32, int8 and int4 GEMM micro-kernels, chosen for this CPU as its own
// operators would, unless simd/tile.h has a better one. Nothing outside kernels/cpu/xnn names a
// type of XNNPACK's, and none of its operators is used: they stream the weights once per 8 to 14
// rows, and they allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/tile.h"
#include "kernels/weight.h"

namespace arn::cpu {

// Micro-kernels read this many entries past the last row's, which must repeat it.
inline constexpr uint32_t kExtraQuantizedRows = 16;
// The tallest tile of any micro-kernel.
inline constexpr uint32_t kMaxTileRows = 16;

struct GemmKernel {
  WeightLayout layout;      // that it reads
  uint32_t tile_rows = 0;   // rows that one call of `many`, or `tile`, takes
  void (*one)() = nullptr;  // XNNPACK's, for one row
  void (*many)() = nullptr;
  TileFn tile = nullptr;  // ours, where it is the better one; the others are null then
};

struct GemmKernels {
  GemmKernel f32, f16, bf16, int8, int4;
  const GemmKernel* For(DType dtype) const;
};

// False when XNNPACK does not know the CPU. The first call of a process lets cpuinfo allocate.
bool InitGemmKernels(GemmKernels* out);

// c[rows, n] = a[rows, k] W^T + bias for n columns that begin at a panel.
struct GemmArgs {
  uint32_t rows, n, k;
  const void* a;  // f32 or int8 rows; for kInt4 k is a multiple of kInt4BlockSize
  size_t a_stride_bytes;
  const QuantizedRow* quantized;  // one per row; null for f32
  const std::byte* panels;
  float* c;
  size_t c_stride_bytes;
};
// For kernels of XNNPACK's.
void Gemm(const GemmKernel& kernel, DType dtype, const GemmArgs& args);

}  // namespace arn::cpu
