// The SIMD kernels as a table of function pointers, filled at load for the CPU's best instruction
// set. Arrays are row-major, dense f32 unless stated otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/logits_ops.h"
#include "kernels/contract/ops.h"
#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/xnn/gemm.h"

namespace arn::cpu {

// Normalises one row of n into out, or adds the result to out.
using NormFn = void (*)(const NormArgs& args, const float* x, uint32_t n, float* out);

// out[n] = activation(gate) * up with in = [gate | up]. limit: kClampedSwiglu only.
using GatedActFn = void (*)(const float* in, uint32_t n, Activation activation, float limit,
                            float* out);

// x[n] = activation(x). parameters: kXielu only.
using ActFn = void (*)(float* x, uint32_t n, Activation activation, const float* parameters);

// x[n] *= by[n] * scale; by: 1 if null.
using MultiplyFn = void (*)(const float* by, float scale, uint32_t n, float* x);

// x[n] *= sigmoid(scale).
using ScaleRowFn = void (*)(float scale, uint32_t n, float* x);

// x[n] = softcap * tanh(x * factor / softcap), or x * factor if softcap is 0.
using SoftcapFn = void (*)(float* x, uint32_t n, float factor, float softcap);

// out[n] += x[n].
using AddRowFn = void (*)(const float* x, uint32_t n, float* out);

// Quantises one row of n to int8; `values` is zero-padded to `padded`. See reference/quantize.cc.
using QuantizeRowFn = QuantizedRow (*)(const float* x, uint32_t n, uint32_t padded, int8_t* values);
// Writes the same integers plus 128, one group of 4 or 8 columns per `stride` bytes, up to column
// `padded`, a multiple of the group. Columns after n are undefined.
// is_symmetric: as CodeType::takes_symmetric_rows.
using QuantizeGroupsFn = QuantizedRow (*)(const float* x, uint32_t n, uint32_t padded,
                                          uint32_t group, uint32_t stride, bool is_symmetric,
                                          uint8_t* groups);

using QkvRopeFn = void (*)(const QkvRopeArgs& args, float* qkv);

// Attention of the queries of consecutive tokens of one sequence to one kv head: query heads
// [first_head, first_head + n_heads) of each of n_rows rows, all of which use kv_head.
struct AttentionTile : AttentionArgs {
  uint32_t kv_head;
  uint32_t first_head, n_heads;
  uint32_t first_position, n_rows;
  const float* q;  // row r's head h at r * q_stride + h * head_dim
  size_t q_stride;
  float* out;
  size_t out_stride;
  // If not null: keys and values of kv_head as rows of floats instead of pages. Row r starts at
  // k_rows + r * q_stride.
  const float* k_rows;
  const float* v_rows;
  const Int8Dot* dot;  // for groups with int8 active pages; or null
  std::byte* scratch;  // AttentionScratchBytes(kind)
  // If not null: the task is one segment of the positions, and writes the partial results of its
  // queries (row by row) here, AttentionPartialFloats(kind) each.
  float* partials;
  uint32_t segment;
};
using AttentionFn = void (*)(const AttentionTile& tile);
// Merges segments computed by separate tasks. tile.partials holds n_segments times the records of
// all queries.
using MergeAttentionFn = void (*)(const AttentionTile& tile, uint32_t n_segments);

// Positions per segment; segment i starts at i times this.
inline constexpr uint32_t kAttentionSegment = 512;
// A tile reads positions [AttentionFirst, AttentionEnd); the first is a multiple of kDotTokens,
// whether or not its page is still there.
uint32_t AttentionFirst(const AttentionTile& tile);
uint32_t AttentionEnd(const AttentionTile& tile);
bool SeesAll(const AttentionTile& tile);
// Maximum queries (rows times heads) per tile.
uint32_t AttentionTileQueries(const AttentionKind& kind);
uint64_t AttentionScratchBytes(const AttentionKind& kind);
uint64_t AttentionPartialFloats(const AttentionKind& kind);

// Channels [first, last) of the arguments.
struct ConvTile : ConvArgs {
  uint32_t first, last;
};
using ConvFn = void (*)(const ConvTile& tile);

struct ScanTile : ScanArgs {
  uint32_t first, last;
};
using ScanFn = void (*)(const ScanTile& tile);

// Panels of states [first, last), counted over the heads.
struct LinearAttentionTile : LinearAttentionArgs {
  uint32_t first, last;
};
using LinearAttentionFn = void (*)(const LinearAttentionTile& tile);

// One row x[n], in place.
using GateFn = void (*)(const GateArgs& args, const float* gate, uint32_t n, float* x);

// The bits of a row do not depend on the others, nor those of an output on n. Of kF16 and kF32.
using LowRankFn = void (*)(const LowRankArgs& args);

// out[n_rows, 16 n_panels] (+)= factor x A^T for an A in int8 or int4, and rows x that are
// quantised: a pair of groups of four bytes begins at x + r * row_stride + i * pair_stride, its
// second one `second` bytes behind it.
struct QuantizedLowRank {
  DType dtype;
  const std::byte* panels;
  const float* scales;  // [16 n_panels]
  const int32_t* sums;
  uint32_t inputs, n_panels;
  const uint8_t* x;
  size_t row_stride, second, pair_stride;
  bool is_offset;            // bytes are 128 more than the integers
  const QuantizedRow* rows;  // that of row r at r * row_step
  uint32_t row_step;
  uint32_t n_rows;
  float* out;
  size_t out_stride;
  float factor;
  bool accumulates;
  // If not null: prefetched as fast as the panels are read, for it is read next.
  const std::byte* ahead;
};
struct LowRankIntegerKernels {
  void (*a)(const QuantizedLowRank& args) = nullptr;
  // Rounds the input of a B: RankRows of args.n_rows rows. They may be where the input is if it is
  // of 8 to kRankChunk ranks.
  void (*round)(const LowRankArgs& args, std::byte* ranks, size_t stride) = nullptr;
  // ranks: what `round` made; or none: rounds them itself, to the same bits.
  void (*b)(const LowRankArgs& args, const RankRows& ranks) = nullptr;
};

struct SimdKernels {
  NormFn norm;
  GatedActFn gated_act;
  ActFn act;
  SoftcapFn softcap;
  AddRowFn add_row;
  QuantizeRowFn quantize_row;
  QuantizeGroupsFn quantize_groups;
  QkvRopeFn qkv_rope;
  AttentionFn attention;
  MergeAttentionFn merge_attention;
  const Int8Dot* int8_dot;  // null: the CPU has none
  ConvFn conv;
  ScanFn scan;
  ScaleRowFn scale_row;
  MultiplyFn multiply;
  LinearAttentionFn linear_attention;
  GateFn gate;
  // Null in libraries without adapters.
  LowRankFn low_rank;
  LowRankIntegerKernels low_rank_integer;
};
void ChooseSimdKernels(SimdKernels* out);

// One per kernel, defined in the files of this folder.
NormFn ChooseNorm();
GatedActFn ChooseGatedAct();
ActFn ChooseAct();
SoftcapFn ChooseSoftcap();
AddRowFn ChooseAddRow();
QuantizeRowFn ChooseQuantizeRow();
QuantizeGroupsFn ChooseQuantizeGroups();
QkvRopeFn ChooseQkvRope();
AttentionFn ChooseAttention();
MergeAttentionFn ChooseMergeAttention();
ConvFn ChooseConv();
ScanFn ChooseScan();
ScaleRowFn ChooseScaleRow();
MultiplyFn ChooseMultiply();
LinearAttentionFn ChooseLinearAttention();
GateFn ChooseGate();
LowRankFn ChooseLowRank();
LowRankIntegerKernels ChooseLowRankInteger();

}  // namespace arn::cpu
