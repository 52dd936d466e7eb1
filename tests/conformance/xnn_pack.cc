#include "xnn_pack.h"

#include <cstring>

#include "platform/base/arith.h"
#include "xnnpack/microparams-init.h"
#include "xnnpack/pack.h"

namespace arn::conformance {
namespace {

// As in XNNPACK src/operators/fully-connected-nc.c: create_fully_connected_nc and
// xnn_create_fully_connected_nc_qd8_f32_qb4w.
std::vector<uint8_t> PackInt4(const Matrix& m, const WeightLayout& l) {
  const size_t k = AlignUp(m.cols, kInt4BlockSize);
  const size_t n_blocks = k / kInt4BlockSize;
  std::vector<uint8_t> nibbles(m.rows * k / 2);
  for (size_t i = 0; i < nibbles.size(); ++i) {
    nibbles[i] = static_cast<uint8_t>(m.values[2 * i] | m.values[2 * i + 1] << 4);
  }
  const size_t extra_block = sizeof(uint16_t), extra = sizeof(float);
  const size_t stride = k / 2 + sizeof(float) + n_blocks * extra_block + extra;
  std::vector<uint8_t> out(AlignUp(m.rows, l.nr) * stride);
  const auto* scales = reinterpret_cast<const xnn_bfloat16*>(m.scales.data());
  const xnn_qs8_qc4w_packing_params params = {/*input_zero_point=*/1, /*kernel_zero_point=*/8};
  xnn_pack_qs8_qb4w_gemm_goi_w(1, m.rows, k, l.nr, l.kr, l.sr, kInt4BlockSize, nibbles.data(),
                               nullptr, scales, out.data(), l.nr * extra_block, l.nr * extra,
                               &params);
  xnn_init_blockwise_scale_bf16_params(m.rows, l.nr, l.nr, l.nr * stride, l.nr * stride, n_blocks,
                                       l.nr * (kInt4BlockSize / 2 + extra_block), 0, scales,
                                       out.data() + l.nr * (sizeof(float) + kInt4BlockSize / 2));
  xnn_init_qs8_qc8w_scale_fp32_params(m.rows, l.nr, l.nr, l.nr * stride, l.nr * stride, 0,
                                      m.bias.data(), out.data() + l.nr * (stride - extra));
  return out;
}

std::vector<uint8_t> PackInt8(const Matrix& m, const WeightLayout& l) {
  const size_t k = AlignUp(m.cols, uint64_t{l.kr} * l.sr);
  const size_t extra = 2 * sizeof(float);
  const size_t stride = k + sizeof(int32_t) + extra;
  std::vector<uint8_t> out(AlignUp(m.rows, l.nr) * stride);
  const xnn_qs8_packing_params params = {/*input_zero_point=*/1};
  xnn_pack_qs8_gemm_goi_w(1, m.rows, m.cols, l.nr, l.kr, l.sr,
                          reinterpret_cast<const int8_t*>(m.values.data()), nullptr, nullptr,
                          out.data(), l.nr * extra, &params);
  uint8_t* scales = out.data() + l.nr * (k + sizeof(int32_t));
  xnn_init_qs8_qc8w_scale_fp32_params(m.rows, l.nr, l.nr, l.nr * stride, l.nr * stride, 0,
                                      reinterpret_cast<const float*>(m.scales.data()), scales);
  xnn_init_qs8_qc8w_scale_fp32_params(m.rows, l.nr, l.nr, l.nr * stride, l.nr * stride, 0,
                                      m.bias.data(), scales + l.nr * sizeof(float));
  return out;
}

std::vector<uint8_t> PackF32(const Matrix& m, const WeightLayout& l) {
  const size_t k = AlignUp(m.cols, uint64_t{l.kr} * l.sr);
  std::vector<uint8_t> out(AlignUp(m.rows, l.nr) * (k + 1) * sizeof(float));
  xnn_pack_f32_gemm_goi_w(1, m.rows, m.cols, l.nr, l.kr, l.sr,
                          reinterpret_cast<const float*>(m.values.data()), m.bias.data(), nullptr,
                          reinterpret_cast<float*>(out.data()), 0, nullptr);
  return out;
}

}  // namespace

std::vector<uint8_t> XnnPack(const Matrix& matrix, const WeightLayout& layout) {
  if (matrix.dtype == DType::kInt4) return PackInt4(matrix, layout);
  if (matrix.dtype == DType::kInt8) return PackInt8(matrix, layout);
  return PackF32(matrix, layout);
}

}  // namespace arn::conformance
