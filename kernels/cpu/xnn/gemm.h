// Interface to XNNPACK: its f32, int8 and int4 GEMM micro-kernels, chosen for this CPU as its own
// operators do, unless simd/tile.h has a faster kernel. XNNPACK types appear only in
// kernels/cpu/xnn. XNNPACK operators are not used: they stream the weights once per 8 to 14 rows,
// and they allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/weight.h"
#include "kernels/cpu/simd/tile.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn::cpu {

// Micro-kernels read this many entries past the last row's; they must repeat the last entry.
inline constexpr uint32_t kExtraQuantizedRows = 16;
// Maximum tile rows of any micro-kernel.
inline constexpr uint32_t kMaxTileRows = 16;

struct GemmKernel {
  WeightLayout layout;      // layout it reads
  uint32_t tile_rows = 0;   // rows per call of `many` or `tile`
  void (*one)() = nullptr;  // XNNPACK, one row
  void (*many)() = nullptr;
  TileFn tile = nullptr;      // our own kernel where it is faster; the other pointers are then null
  bool adds_changes = false;  // TileKernel::adds_changes

  bool IsInRows() const { return layout.order == WeightOrder::kDeviceRows; }
  // Outputs that matmuls are cut into.
  uint32_t columns() const { return IsInRows() ? kColumnsInRows : layout.nr; }
  // Bytes of an activation row's integers that are together in a tile.
  uint32_t group() const { return IsInRows() ? kGroupInRows : layout.kr; }

 private:
  static constexpr uint32_t kColumnsInRows = 16, kGroupInRows = 8;
};

struct GemmKernels {
  GemmKernel of[kDTypeCount];  // without rows: none
  // For matrices of order kDeviceRows, which are read in place; without rows: they are repacked.
  GemmKernel in_rows[kDTypeCount];
  const GemmKernel* For(DType dtype) const { return of + static_cast<uint32_t>(dtype); }
  GemmKernel* For(DType dtype) { return of + static_cast<uint32_t>(dtype); }
  const GemmKernel* For(const Weight& weight) const {
    const GemmKernel* kernel = in_rows + static_cast<uint32_t>(weight.dtype);
    const bool is_in_rows =
        kHasDeviceRows && weight.layout.order == WeightOrder::kDeviceRows && kernel->tile_rows != 0;
    return is_in_rows ? kernel : For(weight.dtype);
  }
};

// reads_device_rows: fills GemmKernels::in_rows. Returns kUnsupported if XNNPACK has no kernels for
// this CPU; kIo or kOutOfMemory from KnowCpu().
Status InitGemmKernels(bool reads_device_rows, GemmKernels* out, Diag* diag);

// c[rows, n] = a[rows, k] W^T + bias for n columns that start at a panel.
struct GemmArgs {
  uint32_t rows, n, k;
  const void* a;  // f32 or int8 rows; for kInt4 k is a multiple of kInt4BlockSize
  size_t a_stride_bytes;
  const QuantizedRow* quantized;  // one entry per row; null for f32
  const std::byte* panels;
  float* c;
  size_t c_stride_bytes;
};
// Runs an XNNPACK kernel.
void Gemm(const GemmKernel& kernel, DType dtype, const GemmArgs& args);

}  // namespace arn::cpu
