// Reference kernels: one scalar function per op, on plain arrays. Arrays are row-major, dense f32
// unless stated otherwise.
// REQUIRES: CheckProgram and CheckRun have passed; nothing is checked here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/kv_page.h"
#include "kernels/contract/program.h"
#include "kernels/contract/state_slot.h"
#include "platform/base/span.h"

namespace arn::reference {

// Quantisation parameters of an activation row for integer matmuls: x ~ (values - zero_point) *
// scale.
struct QuantizedRow {
  int32_t zero_point;
  float scale;
};
// Asymmetric int8 over [min(x, 0), max(x, 0)]. Same float operations in the same order as XNNPACK's
// xnn_f32_qd8_asymmetric_quantization_params and its qd8 convert operator.
QuantizedRow QuantizeRow(const float* x, uint32_t n, int8_t* values);

// out = row `token` of weight times `factor`, plus row `position` of `positions` [.., weight.cols]
// unless null.
void Embed(int32_t token, uint32_t position, const Weight& weight, float factor,
           const float* positions, float* out);

// out[rotary_dim]: cos then sin of position * inv_freq[j], times the amplitude.
void RopeAngles(uint32_t position, const RopeKind& rope, float* out);

// Computes out (+)=
//   x / sqrt(mean(x^2) + epsilon) * weight                                  for NormKind::kRms,
//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias   for kLayer.
// x and out [n] may be the same array. bias is null for kRms.
struct NormArgs {
  NormKind kind;
  const float* weight;
  const float* bias;
  float epsilon;
  bool accumulate;
};
void Norm(const NormArgs& args, const float* x, uint32_t n, float* out);

// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias. int8 and int4 weights: x is
// quantised per row and dot products accumulate in integers, for int4 per block.
// scratch: LinearScratchBytes(weight, rows), 64-byte aligned. splits_rows: as in Program.
void Linear(const float* x, uint32_t rows, const Weight& weight, bool splits_rows, bool accumulate,
            float* out, std::byte* scratch);
uint64_t LinearScratchBytes(const Weight& weight, uint32_t rows);

// One token: applies q/k norm and RoPE in place on qkv [(n_heads + 2 n_kv_heads) * head_dim], then
// writes K and V to their slot. angles [rotary_dim]: output of RopeAngles. Norms may be null.
struct QkvRopeArgs {
  const AttentionKind* kind;
  const KvGroup* group;
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  uint32_t position;
  uint32_t rotary_dim;
  bool shares_kv;       // qkv is q only; K and V are not written
  const float* angles;  // null: no rotation
  const float* q_norm;
  const float* k_norm;
  bool norms_span_heads;  // one norm over all q (or k) heads together; else per head
  float epsilon;
};
void QkvRope(const QkvRopeArgs& args, float* qkv);

// One token: out [n_heads * head_dim] = softmax(cap(q k^T * scale)) v over the visible positions.
// `sinks` adds one logit per head to the softmax denominator (Xiao et al., "Efficient Streaming
// Language Models with Attention Sinks", 2023; learned: OpenAI, arXiv:2508.10925).
// scratch [context] f32.
struct AttentionArgs {
  const AttentionKind* kind;
  const KvGroup* group;
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  uint32_t position;
  const float* sinks;                   // [n_heads], or null
  const float* relative_position_bias;  // as in Step, or null
  uint32_t n_relative_positions;
  bool both_ways;         // bidirectional
  uint32_t encoder_rows;  // kinds with is_cross_attention only
};
void Attention(const AttentionArgs& args, const float* q, float* out, float* scratch);

// Bidirectional attention of one row to all rows of an encoder: qkv [rows, (n_heads + 2 n_kv_heads)
// * head_dim], out [n_heads * head_dim]. scratch [rows] f32. Uses of args: kind,
// relative_position_bias, n_relative_positions, both_ways and position (the row).
void SelfAttention(const AttentionArgs& args, const float* qkv, uint32_t rows, float* out,
                   float* scratch);

// im2col: out [n_taps * width] = rows [row - n_taps / 2, row + n_taps / 2] of in [rows, width],
// zero-padded.
void Im2col(const float* in, uint32_t rows, uint32_t width, uint32_t n_taps, uint32_t row,
            float* out);

// out[n] = activation(gate[n]) * up[n] with in = [gate | up]. limit: kClampedSwiglu only.
void GatedAct(const float* in, uint32_t n, Activation activation, float limit, float* out);

// x[n] = activation(x[n]).
void Act(float* x, uint32_t n, Activation activation);

// Consecutive tokens of one sequence. out [n_rows, width]. `in` has rows of in_stride; the last
// `width` columns are convolved. With is_gated, in is [b | c | x] and out = c * conv(b * x).
// state: the last [taps - 1, width] inputs, oldest first.
struct ConvArgs {
  const float* weight;  // [taps, width], tap of the oldest input first
  const float* bias;    // [width], or null
  uint32_t taps;
  uint32_t width;
  bool is_gated;
  uint64_t in_stride;
  StateSlot state;
};
void Conv(const ConvArgs& args, const float* in, uint32_t n_rows, float* out);

// Consecutive tokens of one sequence: x [n_rows, width] -> out, rows of out_stride.
struct ScanArgs {
  const float* rates;       // [n_states, width]
  const float* skip;        // [width]
  const float* time_steps;  // [n_rows, width]
  const float* mix;         // [n_rows, 2, n_states]: B, then C
  uint32_t n_states;
  uint32_t width;
  uint64_t out_stride;
  StateSlot state;  // [n_states, width]
};
void Scan(const ScanArgs& args, const float* x, uint32_t n_rows, float* out);

// softcap * tanh(x / softcap), or x if softcap is 0 (Bello et al., 2016, arXiv:1611.09940).
float Softcap(float x, float softcap);

}  // namespace arn::reference
