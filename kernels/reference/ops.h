// The reference kernels: one function per op, scalar, on plain arrays. All arrays are row-major
// f32 and dense unless a comment says otherwise. Nothing is checked here; CheckProgram and CheckRun
// have done it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_page.h"
#include "kernels/program.h"
#include "platform/base/span.h"

namespace arn::reference {

// A row of activations as the integer products take it: x ~ (values - zero_point) * scale.
struct QuantizedRow {
  int32_t zero_point;
  float scale;
};
// Asymmetric int8 over [min(x, 0), max(x, 0)], the same floats in the same order as XNNPACK's
// xnn_f32_qd8_asymmetric_quantization_params and its qd8 convert operator.
QuantizedRow QuantizeRow(const float* x, uint32_t n, int8_t* values);

// out[i, :] = row tokens[i] of weight.
void Embed(Span<const int32_t> tokens, const Weight& weight, float* out);

// out[rotary_dim]: cos then sin of position * inv_freq[j], times the amplitude.
void RopeAngles(uint32_t position, const RopeKind& rope, float* out);

// out = x / sqrt(mean(x^2) + epsilon) * weight. x and out [n]; they may be the same array.
void RmsNorm(const float* x, const float* weight, uint32_t n, float epsilon, float* out);

// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias. int8 and int4 weights: x is
// quantised per row and the products are summed as integers, int4 per block.
// scratch: LinearScratchBytes(weight, rows), 64-byte aligned.
void Linear(const float* x, uint32_t rows, const Weight& weight, bool accumulate, float* out,
            std::byte* scratch);
uint64_t LinearScratchBytes(const Weight& weight, uint32_t rows);

// One token: q/k norm and RoPE in place on qkv [(n_heads + 2 n_kv_heads) * head_dim], then K and V
// are written to their slot. angles [rotary_dim] as RopeAngles makes them; norms may be null.
struct QkvRopeArgs {
  const AttentionKind* kind;
  const KvGroup* group;
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  uint32_t position;
  uint32_t rotary_dim;
  bool shares_kv;  // qkv is q alone; nothing is written
  const float* angles;
  const float* q_norm;
  const float* k_norm;
  float epsilon;
};
void QkvRope(const QkvRopeArgs& args, float* qkv);

// One token: out [n_heads * head_dim] = softmax(q k^T * scale) v over the visible positions.
// scratch [context] f32.
struct AttentionArgs {
  const AttentionKind* kind;
  const KvGroup* group;
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  uint32_t position;
};
void Attention(const AttentionArgs& args, const float* q, float* out, float* scratch);

// out[n] = activation(gate[n]) * up[n] with in = [gate | up].
void GatedAct(const float* in, uint32_t n, Activation activation, float* out);

}  // namespace arn::reference
