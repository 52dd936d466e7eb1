#include "converter/quantize/code_rows.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace arn::convert {
namespace {

constexpr float kMostStored = 127.0f;
// Multiples of the scale that gives the extreme value the last level. Either sign is tried: the
// levels need not be symmetric.
constexpr float kStretches[] = {1.0f,  0.95f, 0.9f,  0.85f, 0.8f,  0.75f, 0.7f,
                                0.65f, 0.6f,  0.55f, 0.5f,  1.05f, 1.1f,  1.2f};

// Four floats, with the vector extension of GCC and Clang: the search takes most of the time of a
// conversion, and compilers do not vectorise its float sums.
typedef float CodeVec __attribute__((vector_size(16)));
typedef int32_t CodeInts __attribute__((vector_size(16)));
constexpr size_t kCodeLanes = 4;
constexpr size_t kCodeBlock = 32;

float SumOfLanes(CodeVec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
CodeVec LoadLanes(const float* from) {
  CodeVec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// A block of weights and their importance, padded with weights of none.
struct PaddedBlock {
  PaddedBlock(const float* of, const float* of_columns, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      weights[i] = of[i];
      importance[i] = of_columns == nullptr ? 1.0f : of_columns[i];
    }
  }
  float weights[kCodeBlock] = {}, importance[kCodeBlock] = {};
};

// Squared error of a block, and what least squares needs of it.
struct BlockError {
  float error = 0.0f;
  float product = 0.0f, square = 0.0f;  // sums of weight times level, and of squared levels

  float BestScale() const { return square > 0.0f ? product / square : 0.0f; }
};

BlockError ErrorOf(const CodeType& type, const PaddedBlock& block, float scale) {
  const float inverse = 1.0f / scale;
  CodeVec error = {}, product = {}, square = {};
  for (size_t i = 0; i < kCodeBlock; i += kCodeLanes) {
    const CodeVec weight = LoadLanes(block.weights + i),
                  of_column = LoadLanes(block.importance + i);
    const CodeVec value = weight * inverse;
    CodeInts whole = CodeInts{} + type.levels[0];
    for (uint32_t code = 1; code < type.n_levels(); ++code) {
      const int step = type.levels[code] - type.levels[code - 1];
      const float border = 0.5f * static_cast<float>(type.levels[code - 1] + type.levels[code]);
      whole += (value > border) & step;
    }
    const CodeVec level = __builtin_convertvector(whole, CodeVec);
    const CodeVec difference = weight - level * scale;
    error += of_column * difference * difference;
    product += of_column * level * weight;
    square += of_column * level * level;
  }
  return {SumOfLanes(error), SumOfLanes(product), SumOfLanes(square)};
}

}  // namespace

int16_t CodeGrid::Stored(float scale) const {
  const float stored = std::nearbyint(scale / row_scale_);
  if (std::fabs(stored) < 1.0f) return scale < 0.0f ? -1 : 1;
  return static_cast<int16_t>(std::min(std::max(stored, -kMostStored), kMostStored));
}

float SearchBlockScale(const CodeGrid& grid, const float* weights, const float* importance,
                       size_t n) {
  float extreme = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    if (std::fabs(weights[i]) > std::fabs(extreme)) extreme = weights[i];
  }
  const CodeType& type = grid.type();
  const auto first = static_cast<float>(type.levels[0]);
  const auto last = static_cast<float>(type.levels[type.n_levels() - 1]);
  if (std::fabs(extreme) < FLT_MIN * 256) return 0.0f;
  // Skips the other sign, which changes nothing.
  const bool is_symmetric = first == -last;
  const PaddedBlock block(weights, importance, n);
  float best = 0.0f, least = FLT_MAX, best_square = 0.0f;
  const auto attempt = [&](float scale) {
    if (!std::isfinite(scale) || scale == 0.0f) return;
    const BlockError found = ErrorOf(type, block, scale);
    if (!(found.error < least)) return;
    least = found.error;
    best = scale;
    best_square = found.BestScale();
  };
  for (const float stretch : kStretches) {
    attempt(extreme / last * stretch);
    if (!is_symmetric) attempt(extreme / first * stretch);
  }
  attempt(best_square);
  attempt(best_square);
  return best;
}

void QuantizeRowCodes(const CodeType& type, const float* weights, size_t cols,
                      const float* importance, const CodeRow& out) {
  const CodeGrid unit(type, 1.0f);
  const auto blocks = static_cast<size_t>(type.Blocks(cols));
  std::vector<float> wanted(blocks);
  float largest = 0.0f;
  const auto size_of = [&](size_t b) {
    return std::min<size_t>(type.block, cols - b * type.block);
  };
  const auto importance_of = [&](size_t b) {
    return importance == nullptr ? nullptr : importance + b * type.block;
  };
  for (size_t b = 0; b < blocks; ++b) {
    const float* block = weights + b * type.block;
    wanted[b] = SearchBlockScale(unit, block, importance_of(b), size_of(b));
    largest = std::max(largest, std::fabs(wanted[b]));
  }
  const float row_scale = largest == 0.0f ? 0.0f : std::max(largest / kMostStored, FLT_MIN);
  *out.row_scale = row_scale;
  std::fill(out.codes, out.codes + type.Padded(cols), uint8_t{0});
  if (row_scale == 0.0f) return std::fill(out.scales, out.scales + blocks, int16_t{1});
  const CodeGrid grid(type, row_scale);
  for (size_t b = 0; b < blocks; ++b) {
    const float* block = weights + b * type.block;
    const PaddedBlock padded(block, importance_of(b), size_of(b));
    // The neighbours of a small whole number are far from it.
    const int16_t middle = grid.Stored(wanted[b]);
    float least = FLT_MAX;
    for (int step = -1; step <= 1; ++step) {
      const int stored = middle + step;
      if (stored == 0 || std::abs(stored) > 127) continue;
      const float scale = static_cast<float>(stored) * row_scale;
      const float error = ErrorOf(type, padded, scale).error;
      if (!(error < least)) continue;
      least = error;
      out.scales[b] = static_cast<int16_t>(stored);
    }
    const float inverse = 1.0f / (static_cast<float>(out.scales[b]) * row_scale);
    for (size_t i = 0; i < size_of(b); ++i) {
      out.codes[b * type.block + i] = static_cast<uint8_t>(grid.Code(block[i] * inverse));
    }
  }
}

}  // namespace arn::convert
