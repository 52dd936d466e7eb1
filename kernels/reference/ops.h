// Reference kernels: one scalar function per op, on the arguments of kernels/contract/ops.h. Arrays
// are row-major, dense f32 unless stated otherwise. REQUIRES: CheckProgram and CheckRun have
// passed; nothing is checked here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/ops.h"
#include "kernels/contract/program.h"
#include "platform/base/span.h"

namespace arn::reference {

// Quantisation parameters of an activation row for integer matmuls: x ~ (values - zero_point) *
// scale.
struct QuantizedRow {
  int32_t zero_point;
  float scale;
};
// Asymmetric int8 over [min(x, 0), max(x, 0)], or symmetric (CodeType::takes_symmetric_rows). Same
// float operations in the same order as XNNPACK's xnn_f32_qd8_asymmetric_quantization_params and
// its qd8 convert operator.
QuantizedRow QuantizeRow(const float* x, uint32_t n, bool is_symmetric, int8_t* values);

// out = row `token` of weight (of 0 if it is negative) times `factor`, or `embedding` unless null;
// plus row `position` of `positions` [.., weight.cols] unless null.
void Embed(int32_t token, const float* embedding, uint32_t position, const Weight& weight,
           float factor, const float* positions, float* out);

// out[rotary_dim]: cos then sin of position * inv_freq[j], times the amplitude.
void RopeAngles(uint32_t position, const uint32_t* axis_positions, const RopeKind& rope,
                float* out);

void Norm(const NormArgs& args, const float* x, uint32_t n, float* out);

// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias. Integer weights: x is quantised per
// row and dot products accumulate in integers, within blocks.
// scratch: LinearScratchBytes(weight, rows), 64-byte aligned. splits_rows: as in Program.
void Linear(const float* x, uint32_t rows, const Weight& weight, bool splits_rows, bool accumulate,
            float* out, std::byte* scratch);
uint64_t LinearScratchBytes(const Weight& weight, uint32_t rows);

void QkvRope(const QkvRopeArgs& args, float* qkv);

// One token at `position`: out [n_heads * head_dim] = softmax(cap(q k^T * scale)) v over the
// visible positions. scratch [context] f32.
void Attention(const AttentionArgs& args, uint32_t position, const float* q, float* out,
               float* scratch);

// Bidirectional attention of one row to all args.encoder_rows rows of an encoder: qkv [rows,
// (n_heads
// + 2 n_kv_heads) * head_dim], out [n_heads * head_dim]. scratch [rows] f32.
void SelfAttention(const AttentionArgs& args, uint32_t row, const float* qkv, float* out,
                   float* scratch);

// im2col: out [n_taps * width] = the n_taps rows from row * stride - padding on of in [rows,
// width], zero-padded.
void Im2col(const float* in, uint32_t rows, uint32_t width, const Im2colParams& params,
            uint32_t row, float* out);

// out[n] = activation(gate[n]) * up[n] with in = [gate | up]. limit: kClampedSwiglu only.
void GatedAct(const float* in, uint32_t n, Activation activation, float limit, float* out);

// x[n] = activation(x[n]). parameters: kXielu only.
void Act(float* x, uint32_t n, Activation activation, const float* parameters);

// x[n] *= by[n] * scale; by: 1 if null.
void Multiply(const float* by, float scale, uint32_t n, float* x);

// x[n] *= sigmoid(scale).
void ScaleRow(float scale, uint32_t n, float* x);

// In double precision. kInt8: rounds B's input, but not A's.
void MultiplyLowRank(const LowRankArgs& args);

void Conv(const ConvArgs& args);
void Scan(const ScanArgs& args);
void LinearAttention(const LinearAttentionArgs& args);

// x[n], in place.
void Gate(const GateArgs& args, const float* gate, uint32_t n, float* x);

// softcap * tanh(x / softcap), or x if softcap is 0 (Bello et al., 2016, arXiv:1611.09940).
float Softcap(float x, float softcap);

}  // namespace arn::reference
