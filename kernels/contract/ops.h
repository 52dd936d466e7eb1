// Arguments of the kernels, the same for every backend on the host. Arrays are row-major, dense f32
// unless stated otherwise.
// REQUIRES: CheckProgram and CheckRun have passed; kernels check nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/adapter.h"
#include "kernels/contract/kv_page.h"
#include "kernels/contract/program.h"
#include "kernels/contract/row_mask.h"
#include "kernels/contract/state_slot.h"

namespace arn {

// out (+)=
//   x / sqrt(mean(x^2) + epsilon) * weight                                  for NormKind::kRms,
//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + bias   for kLayer.
// x and out [n] may be the same array.
struct NormArgs {
  NormKind kind;
  const float* weight;  // [n]
  const float* bias;    // [n]; null for kRms
  float epsilon;
  bool accumulate;
};

// One token: applies q/k norm and RoPE in place on qkv [(n_heads + 2 n_kv_heads) * head_dim], then
// writes K and V to their slot.
struct QkvRopeArgs {
  const AttentionKind* kind;
  const KvGroup* group;  // null: K and V stay in qkv, v_norm applied
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  uint32_t position;       // in the sequence
  uint32_t text_position;  // the same unless RunArgs::mask says otherwise: of query temperature
  uint32_t rotary_dim;
  bool shares_kv;       // qkv is q only; K and V are not written
  const float* angles;  // [rotary_dim]: cos, then sin; null: no rotation
  const float* q_norm;  // [head_dim], or [n_heads * head_dim] if norms_span_heads, or null
  const float* k_norm;
  const float* v_norm;    // [head_dim] or null
  bool norms_span_heads;  // one norm over all q (or k) heads together; else per head
  float epsilon;
};

// Attention of queries to the pages of a layer.
// `sinks` adds one logit per head to the softmax denominator (Xiao et al., "Efficient Streaming
// Language Models with Attention Sinks", 2023; learned: OpenAI, arXiv:2508.10925).
struct AttentionArgs {
  const AttentionKind* kind;
  const KvGroup* group;
  KvPools pools;
  const PageTable* table;
  uint32_t group_layer;
  const float* sinks;                   // [n_heads], or null
  const float* relative_position_bias;  // [n_relative_positions, n_heads], or null
  uint32_t n_relative_positions;
  uint32_t encoder_rows;  // rows every query sees: is_cross_attention and kSelfAttention
  VisibleCells visible;   // from the row of the query, or of a tile's first query
};

// Consecutive tokens of one sequence: out [n_rows, width] = (c *) conv((b *) x).
struct ConvArgs {
  const float* weight;  // [taps, width], tap of the oldest input first
  const float* bias;    // [width], or null
  uint32_t taps, width;
  const float* x;  // rows of in_stride
  const float* b;  // rows of in_stride, or null together with c
  const float* c;
  size_t in_stride;
  StateSlot state;  // the last [taps - 1, width] inputs, oldest first
  uint32_t n_rows;
  float* out;  // [n_rows, width]
};

// Consecutive tokens of one sequence: x [n_rows, width] -> out, rows of out_stride.
struct ScanArgs {
  const float* rates;       // [n_states, width]
  const float* skip;        // [width]
  const float* time_steps;  // [n_rows, width]
  const float* mix;         // [n_rows, 2, n_states]: B, then C
  uint32_t n_states, width;
  StateSlot state;  // [n_states, width]
  uint32_t n_rows;
  const float* x;  // [n_rows, width]
  float* out;      // rows of out_stride
  size_t out_stride;
};

// Consecutive tokens of one sequence. Of each head, S [key_dim, value_dim] and g = exp(dt A):
//   delta rule: S = g S + k (beta (v - g S^T k))^T;  y = S^T q / sqrt(key_dim)
//   else:       S = g S + k (dt v)^T;                y = S^T q + D v
// dt = clamp(softplus(step + bias)); beta is beta_factor times a sigmoid. With a factor of 2 states
// may have negative eigenvalues (Grazzi et al., 2024, arXiv:2411.12537). The delta rule divides q
// and k by their lengths, sqrt(sum of squares + kLengthEpsilon).
struct LinearAttentionArgs {
  const float* heads;  // [2 or 3, n_heads], as in LinearAttentionParams
  bool has_skip;
  bool has_delta_rule;
  float beta_factor;
  float time_step_low, time_step_high;
  uint32_t n_heads, heads_per_key;  // heads that share q and k
  uint32_t key_dim, value_dim;
  // A head's states are panels of kStateColumns columns, and a narrower one of the rest: [panels]
  // [key_dim, columns].
  StateSlot state;
  uint32_t n_rows;
  const float* in;  // rows of in_stride
  size_t in_stride;
  const float* gates;  // rows of gates_stride: time steps, then betas
  size_t gates_stride;
  float* out;  // rows of n_heads * value_dim
};
// Returns the sizes and switches of a step, without addresses.
LinearAttentionArgs LinearAttentionOf(const Program& program, const Step& step);
inline constexpr uint32_t kStateColumns = 32;
inline constexpr float kLengthEpsilon = 1e-6f;

// One of the two products of a low-rank change: x W^T for a W of adapter.h, of whose outputs n are
// written, from the first of a panel on.
struct LowRankArgs {
  DType dtype;          // kF16, kF32 or kInt8
  const float* scales;  // kInt8: of A's outputs, or of B's panels
  const int32_t* sums;  // kInt8, A only: of an output's integers
  const std::byte* panels;
  uint32_t inputs, n;
  uint32_t n_rows;
  const float* x;  // rows of x_stride
  size_t x_stride;
  float* out;  // rows of out_stride: out += x W^T, or out = factor x W^T in whole panels
  size_t out_stride;
  bool accumulates;
  float factor;
};
// Returns the number of floats of a row of A x: the rank, padded to whole panels.
uint32_t RankStride(uint32_t rank);
// Return the products of a change: y [n_rows, RankStride] = scale A x, and out += B y of a block.
// out: rows as wide as the changed matrix has rows, `width`.
LowRankArgs LowRankA(const LowRank& change, float scale, const float* x, uint32_t n_rows, float* y);
LowRankArgs LowRankB(const LowRank& change, const LowRankBlock& block, const float* y,
                     uint32_t n_rows, float* out, uint32_t width);

// Pools rows [n_rows, width] to out [width], of kConcat [n_rows * width]. REQUIRES: n_rows > 0.
struct PoolArgs {
  PoolKind mode = PoolKind::kMean;
  float factor = 1.0f;
  const float* shift = nullptr;  // [width of out], or null; likewise scale
  const float* scale = nullptr;
};
void PoolRows(const PoolArgs& args, const float* rows, uint32_t n_rows, uint32_t width, float* out);

// x [n_rows, width] becomes (x - mean) / sqrt(variance + epsilon) * weight + bias, with the mean
// and variance of all elements. weight and bias [width].
void NormRows(const float* weight, const float* bias, float epsilon, uint32_t n_rows,
              uint32_t width, float* x);

// x[n] (as norms_first says) = norm(x) * activation(gate), or norm(x * activation(gate)). With a
// head_dim, x[h] = x[h] * softplus(gate[h]) for each head.
struct GateArgs {
  uint32_t head_dim;
  const float* norm;  // null: no norm
  bool norm_repeats;  // `norm` is of one group; else of all
  uint32_t norm_group;
  float epsilon;
  Activation activation;
  bool norms_first;
};
// Returns the arguments without the address of the norm.
GateArgs GateOf(const Program& program, const GateParams& params);

}  // namespace arn
