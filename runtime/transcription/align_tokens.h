// Finds when each token of a text was heard from the weights of cross-attention: transformers'
// WhisperGenerationMixin._extract_token_timestamps, with dynamic time warping (Sakoe and Chiba,
// "Dynamic programming algorithm optimization for spoken word recognition", 1978).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"

namespace arn {

inline constexpr uint32_t kMaxMedian = 31;

// Weights of each head [n_heads][most_tokens][stride], of which n_tokens and n_rows are used: how
// much a token attends to a row of audio.
struct HeardWeights {
  float* data = nullptr;
  uint32_t n_heads = 0;
  uint32_t most_tokens = 0;
  uint32_t stride = 0;
  uint32_t n_tokens = 0;
  uint32_t n_rows = 0;

  float* Row(uint32_t head, uint32_t token) const {
    return data + (size_t{head} * most_tokens + token) * stride;
  }
};

// Work memory of AlignTokens().
struct AlignScratch {
  Span<float> floats;
  Span<uint8_t> steps;

  static size_t Floats(uint32_t tokens, uint32_t rows) {
    return 2 * size_t{rows} + 2 * (size_t{tokens} + 1);
  }
  static size_t Steps(uint32_t tokens, uint32_t rows) { return size_t{tokens} * rows; }
};

// Sets out_rows[t] to the row with which token t begins; rows do not decrease. Of each head, the
// weights of a row are normalised over the tokens (a row that all attend to alike says nothing) and
// those of a token filtered by a median over `median` rows; then the heads are averaged. Overwrites
// the weights. REQUIRES: n_tokens and n_rows are above 0, `median` is odd and at most kMaxMedian.
void AlignTokens(const HeardWeights& weights, uint32_t median, const AlignScratch& scratch,
                 Span<uint32_t> out_rows);

}  // namespace arn
