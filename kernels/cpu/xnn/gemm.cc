#include "kernels/cpu/xnn/gemm.h"

#include <cmath>
#include <type_traits>

#include "kernels/contract/code_type.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/native_layout.h"
#include "platform/base/arith.h"
#include "xnnpack/config.h"
#include "xnnpack/microfnptr.h"
#include "xnnpack/microparams.h"

namespace arn::cpu {
namespace {

static_assert(sizeof(QuantizedRow) == sizeof(xnn_qd8_quantization_params));
static_assert(offsetof(QuantizedRow, zero_point) ==
              offsetof(xnn_qd8_quantization_params, zero_point));
static_assert(offsetof(QuantizedRow, scale) == offsetof(xnn_qd8_quantization_params, inv_scale));
// Blockwise int4 micro-kernels differ from int8 ones only in their parameters.
static_assert(std::is_same_v<xnn_dqgemm_ukernel_fn, xnn_dqgemm_bl_ukernel_fn>);

// On chips with several core types XNNPACK may list one kernel per type; all of them run on every
// core. Always uses the first, so that results do not depend on the core.
bool Choose(const xnn_gemm_config* config, DType dtype, GemmKernel* out) {
  if (config == nullptr || config->mr == 0 || config->mr > kMaxTileRows) return false;
  out->layout = {WeightOrder::kPanels, config->nr, static_cast<uint8_t>(1 << config->log2_kr),
                 static_cast<uint8_t>(1 << config->log2_sr),
                 dtype == DType::kInt4 ? config->planes : uint8_t{0}};
  out->tile_rows = config->mr;
  const gemm_fused_ukernels& kernels = config->minmax;
  if (dtype == DType::kF32) {
    out->one = reinterpret_cast<void (*)()>(kernels.gemm[0].function[XNN_UARCH_DEFAULT]);
    out->many =
        reinterpret_cast<void (*)()>(kernels.gemm[config->mr - 1].function[XNN_UARCH_DEFAULT]);
  } else {
    out->one = reinterpret_cast<void (*)()>(kernels.dqgemm[0].function[XNN_UARCH_DEFAULT]);
    out->many =
        reinterpret_cast<void (*)()>(kernels.dqgemm[config->mr - 1].function[XNN_UARCH_DEFAULT]);
  }
  if (out->one == nullptr) out->one = out->many;
  return out->many != nullptr;
}

GemmKernel Ours(const TileKernel& tile) {
  GemmKernel kernel;
  kernel.layout = tile.layout;
  kernel.tile_rows = tile.rows;
  kernel.tile = tile.run;
  kernel.adds_changes = tile.adds_changes;
  return kernel;
}

}  // namespace

Status InitGemmKernels(bool reads_device_rows, GemmKernels* out, Diag* diag) {
  if (const Status status = KnowCpu(); status != Status::kOk) {
    return diag->Fail(status, "cannot detect the CPU: the process has no %s left",
                      status == Status::kIo ? "file descriptor" : "memory");
  }
  *out->For(DType::kF16) = Ours(ChooseF16Tile());
  *out->For(DType::kBf16) = Ours(ChooseBf16Tile());
  GemmKernel* int4 = out->For(DType::kInt4);
  GemmKernel* int8 = out->For(DType::kInt8);
  *int4 = Ours(ChooseIntegerTile(DType::kInt4));
  *int8 = Ours(ChooseIntegerTile(DType::kInt8));
  for (uint32_t i = 0; kHasLowBits && i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (FindCodeType(dtype) != nullptr) *out->For(dtype) = Ours(ChooseCodeTile(dtype));
  }
  for (uint32_t i = 0; kHasDeviceRows && reads_device_rows && i < kDTypeCount; ++i) {
    out->in_rows[i] = Ours(ChooseRowsTile(static_cast<DType>(i)));
  }
  const bool has_int4 =
      int4->tile != nullptr || Choose(xnn_init_qd8_f32_qb4w_gemm_config(), DType::kInt4, int4);
  const bool has_int8 =
      int8->tile != nullptr || Choose(xnn_init_qd8_f32_qc8w_gemm_config(), DType::kInt8, int8);
  if (has_int4 && has_int8 &&
      Choose(xnn_init_f32_gemm_config(), DType::kF32, out->For(DType::kF32))) {
    return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "XNNPACK has no kernels for this CPU");
}

void Gemm(const GemmKernel& kernel, DType dtype, const GemmArgs& args) {
  const size_t column_step = kernel.layout.nr * sizeof(float);
  xnn_f32_minmax_params f32_params;
  f32_params.scalar.min = -INFINITY;
  f32_params.scalar.max = INFINITY;
  xnn_f32_qb4w_minmax_params int4_params;
  int4_params.scalar.min = -INFINITY;
  int4_params.scalar.max = INFINITY;
  int4_params.scalar.blocksize = kInt4BlockSize;
  const void* params = dtype == DType::kInt4 ? static_cast<const void*>(&int4_params)
                                             : static_cast<const void*>(&f32_params);
  const auto run = args.rows == 1 ? kernel.one : kernel.many;
  for (uint32_t row = 0; row < args.rows; row += kernel.tile_rows) {
    const uint32_t rows = Min(kernel.tile_rows, args.rows - row);
    const auto* a = static_cast<const std::byte*>(args.a) + row * args.a_stride_bytes;
    auto* c = reinterpret_cast<std::byte*>(args.c) + row * args.c_stride_bytes;
    if (dtype == DType::kF32) {
      reinterpret_cast<xnn_gemm_ukernel_fn>(run)(rows, args.n, args.k * sizeof(float), a,
                                                 args.a_stride_bytes, args.panels, c,
                                                 args.c_stride_bytes, column_step, params);
    } else {
      const auto* q = reinterpret_cast<const xnn_qd8_quantization_params*>(args.quantized + row);
      reinterpret_cast<xnn_dqgemm_ukernel_fn>(run)(rows, args.n, args.k, a, args.a_stride_bytes,
                                                   args.panels, c, args.c_stride_bytes, column_step,
                                                   params, q);
    }
  }
}

}  // namespace arn::cpu

namespace arn {

WeightLayout NativeLayout(DType dtype) {
  cpu::GemmKernels kernels;
  Diag diag;
  if (cpu::InitGemmKernels(/*reads_device_rows=*/false, &kernels, &diag) != Status::kOk) return {};
  return kernels.For(dtype)->layout;
}

}  // namespace arn
