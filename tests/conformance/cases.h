// The shapes every backend is tested with, and the tolerances.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/contract/kv_view.h"
#include "kernels/contract/weight.h"
#include "kernels/pack/pack.h"

namespace arn::conformance {

struct MatrixShape {
  uint32_t rows, cols;
};
// [outputs, inputs]: hidden 172, vocabulary 1021, tails of every tile, one column, one row.
inline constexpr MatrixShape kMatrixShapes[] = {
    {1, 1},     {3, 8},     {16, 32},    {17, 33},   {172, 172},
    {344, 172}, {172, 460}, {1021, 172}, {40, 1280}, {20, 2113},
};
// Rows of activations: one token, around the height of each micro-kernel, a chunk.
inline constexpr uint32_t kRowCounts[] = {1, 2, 5, 7, 16, 33};

inline constexpr DType kWeightTypes[] = {
    DType::kF32,      DType::kF16,         DType::kBf16,  DType::kInt8,    DType::kInt4,
    DType::kTernary,  DType::kTernaryRows, DType::kInt2,  DType::kInt3,    DType::kInt4K,
    DType::kInt4K128, DType::kInt4K32,     DType::kInt6K, DType::kInt6K32, DType::kInt8K,
    DType::kFp4,      DType::kIq4K,        DType::kIq4,   DType::kInt8K256};
inline constexpr DType kKvTypes[] = {DType::kF32, DType::kF16, DType::kInt8};

// Returns every layout in which a bundle may store a matrix of `dtype`.
inline std::vector<WeightLayout> TargetLayouts(DType dtype) {
  std::vector<WeightLayout> layouts;
  for (const PackTarget& target : PackTargets()) {
    const WeightLayout layout = TargetLayout(target, dtype);
    bool known = false;
    for (const WeightLayout& l : layouts) known = known || l == layout;
    if (!known) layouts.push_back(layout);
  }
  return layouts;
}

struct AttentionShape {
  uint32_t n_heads, n_kv_heads, head_dim, rotary_dim, window, page_tokens;
  bool qk_norm;
  uint32_t chunk = 0;
  float softcap = 0.0f;
  bool norms_span_heads = false;
  bool has_sinks = false;
  float temperature = 0.0f;  // of q, in steps of 5 tokens
  uint32_t temperature_shift = 1;
  bool norm_follows_rope = false;
  float clip = 0.0f;
};
inline constexpr AttentionShape kAttentionShapes[] = {
    {4, 4, 8, 8, 0, 8, false},     // narrower than a SIMD vector
    {9, 3, 64, 64, 0, 32, false},  // grouped-query attention
    {7, 1, 80, 80, 0, 32, false},  // 7 : 1, not a power of two
    {6, 2, 96, 48, 0, 8, true},    // partial rotary, q/k norm
    {4, 2, 128, 128, 0, 32, true},
    {8, 8, 64, 64, 1, 8, false},    // sees only itself
    {4, 2, 64, 64, 8, 8, false},    // window of one page
    {4, 2, 64, 64, 13, 32, false},  // window ends inside a page
    {64, 1, 16, 16, 0, 32, false},  // more query heads than a tile has queries
    {2, 1, 12, 4, 5, 64, false},
    {4, 2, 64, 64, 0, 8, false, 16},                           // chunks of whole pages
    {4, 1, 40, 40, 0, 32, false, 11},                          // chunks end inside a page
    {2, 2, 16, 16, 6, 8, false, 10},                           // a window inside chunks
    {4, 2, 32, 32, 9, 8, false, 0, 5.0f},                      // logit softcap
    {6, 2, 16, 0, 0, 8, false},                                // no RoPE
    {6, 3, 24, 24, 0, 16, true, 0, 0.0f, true},                // one norm across all heads
    {6, 2, 40, 40, 0, 8, false, 0, 0.0f, false, true},         // attention sinks
    {4, 4, 16, 16, 5, 16, true, 0, 2.0f, false, true},         // sinks with a window and a softcap
    {4, 2, 24, 0, 0, 16, false, 0, 0.0f, false, false, 0.3f},  // later queries are sharper
    {4, 2, 24, 24, 0, 16, false, 0, 0.0f, false, false, 0.3f, 0},      // from position 0 on
    {6, 2, 40, 24, 0, 8, true, 0, 0.0f, false, false, 0.0f, 1, true},  // norms of rotated heads
    {5, 1, 20, 20, 7, 8, true, 0, 0.0f, false, false, 0.0f, 1, false, 0.7f},  // clipped
    {4, 4, 24, 24, 0, 16, true, 0, 0.0f, true, false, 0.0f, 1, false, 0.9f},  // clipped after norms
};

// Quantised pages: groups of a whole page and of part of one, and head dimensions that are not a
// multiple of the group.
struct QuantisedShape {
  uint32_t n_heads, n_kv_heads, head_dim, page_tokens, group_size, window;
};
inline constexpr QuantisedShape kQuantisedShapes[] = {
    {2, 2, 8, 8, 8, 0},   {7, 1, 80, 32, 32, 0},  {3, 1, 96, 16, 8, 21},
    {4, 2, 64, 32, 8, 0}, {2, 1, 20, 8, 4, 5},    {4, 2, 128, 16, 16, 0},
    {8, 2, 6, 8, 2, 0},   {9, 3, 64, 32, 32, 33}, {6, 2, 32, 32, 16, 40},
};
// Bits of keys and of values; 0: stored as in an active page. Ranges: of keys per channel and of
// values per token, unless the flags say otherwise.
struct QuantisedBits {
  uint32_t k, v;
  bool k_by_token = false, v_by_channel = false;

  bool has_default_ranges() const { return !k_by_token && !v_by_channel; }
};
inline constexpr QuantisedBits kQuantisedBits[] = {
    {4, 4}, {2, 2}, {4, 0}, {0, 2}, {2, 4}, {4, 4, true, true}, {2, 4, true}, {4, 2, false, true},
};

// Recurrent layers. Convolution: taps, channels, and true if its input is [b | c | x]. Scan:
// states. Covers tails of every vector, one channel, one tile and more.
struct ConvShape {
  uint32_t taps, width;
  bool is_gated, has_bias;
};
inline constexpr ConvShape kConvShapes[] = {
    {1, 5, false, true},  {4, 1, false, false}, {4, 33, false, true},  {4, 172, false, true},
    {3, 64, true, false}, {3, 77, true, true},  {2, 1537, true, true}, {64, 18, false, true},
};
struct ScanShape {
  uint32_t n_states, width;
};
inline constexpr ScanShape kScanShapes[] = {{1, 1},   {16, 128}, {5, 33},
                                            {256, 7}, {3, 1537}, {16, 172}};

// One sequence of a batch: rows in this run and tokens before it.
struct SequenceShape {
  uint32_t n_rows, n_before;
};
inline const std::vector<std::vector<SequenceShape>> kRuns = {
    {{1, 0}}, {{1, 40}}, {{19, 0}}, {{33, 21}}, {{1, 7}, {12, 0}, {5, 31}},
};

// Largest error relative to the largest magnitude of the expected values (at least 1e-3).
inline constexpr double kTolerance = 2e-6;           // element-wise ops, sums of up to 1280 terms
inline constexpr double kAttentionTolerance = 1e-5;  // adds a softmax
// Of sums of n terms: their rounding grows with them.
constexpr double SumTolerance(uint32_t n) {
  return n <= 1280 ? kTolerance : kTolerance * static_cast<double>(n) / 1280;
}
// The integer path over int8 pages quantises queries and weights to 15 bits: scores of 10 are off
// by up to 3e-4, and so are the weights. (Quantising the keys to int8 costs about 100 times that.)
inline constexpr double kInt8AttentionTolerance = 5e-4;
// An int8 value may round the other way when its input differs in the last bit.
inline constexpr int kInt8Steps = 1;

}  // namespace arn::conformance
