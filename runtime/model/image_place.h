// ImagePlace: with M-RoPE, where an embedding's token is in its image. Its floats follow what
// the decoder takes, so that an app passes them on unread.
#pragma once

#include <cstdint>

#include "runtime/model/model_spec.h"

namespace arn {

// Row and column of a token in its image, and the larger of the image's sides, in tokens. The first
// token of an image has row and column 0.
struct ImagePlace {
  uint32_t row = 0, col = 0, span = 0;
};
inline constexpr uint32_t kPlaceFloats = 3;
// No image has a larger one, and f32 has every number up to it.
inline constexpr uint32_t kMaxImageSpan = 1u << 16;

// Returns the floats that the decoder takes of an embedding: the vector in the token's place, then
// what is added behind each of its first layers.
inline uint32_t VectorFloats(const ModelSpec& spec) {
  return spec.hidden * (1 + static_cast<uint32_t>(spec.vision.deepstack.size()));
}

// Returns the floats of an embedding.
inline uint32_t EmbeddingFloats(const ModelSpec& spec) {
  return VectorFloats(spec) + (spec.vision.has_mrope ? kPlaceFloats : 0);
}

inline void WritePlace(const ImagePlace& place, float* out) {
  out[0] = static_cast<float>(place.row);
  out[1] = static_cast<float>(place.col);
  out[2] = static_cast<float>(place.span);
}

// Returns false for what no encoder writes.
inline bool ReadPlace(const float* from, ImagePlace* out) {
  for (uint32_t i = 0; i < kPlaceFloats; ++i) {
    if (!(from[i] >= 0.0f && from[i] <= static_cast<float>(kMaxImageSpan))) return false;
  }
  *out = {static_cast<uint32_t>(from[0]), static_cast<uint32_t>(from[1]),
          static_cast<uint32_t>(from[2])};
  return static_cast<float>(out->row) == from[0] && static_cast<float>(out->col) == from[1] &&
         static_cast<float>(out->span) == from[2] && out->row < out->span && out->col < out->span;
}

}  // namespace arn
