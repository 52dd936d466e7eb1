#version 450
#extension GL_GOOGLE_include_directive : require
// kEmbed: the token's row times a factor, or an embedding in its place, plus the position's row.
// One invocation per element.
#include "common.glsl"
#include "weights.glsl"

layout(constant_id = kEmbedTypeId) const uint TYPE = 0;
layout(constant_id = kEmbedHasPositionsId) const uint HAS_POSITIONS = 0;

layout(set = 0, binding = 1) readonly buffer Embeddings { float embeddings[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 5) readonly buffer Positions { float positions[]; };
layout(push_constant) uniform Push { EmbedPush push; };

float element(uint token, uint c) {
  uint base = push.weights_at + token * push.row_words;
  if (TYPE == kTypeF32) return uintBitsToFloat(weight_words[base + c]);
  if (TYPE == kTypeF16 || TYPE == kTypeBf16) {
    return pair_of(TYPE, weight_words[base + c / 2])[c & 1u];
  }
  if (TYPE == kTypeInt8) {
    int value = bytes_of(weight_words[base + c / 4])[c & 3u];
    return float(value) * row_scale(push.rows_at + (push.first_token + token) * kRowHeadWords);
  }
  int value = nibble_of(weight_words[base + c / 8], c & 7u);
  uint blocks = push.rows_at + push.blocks_at + (push.first_token + token) * push.block_words;
  return float(value) * bf16_at(blocks, c / 32);
}

void main() {
  uint c = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  uint id = row_token(row);
  bool is_embedding = (id & kIsEmbedding) != 0;
  uint token = (is_embedding ? 0 : id) - push.first_token;
  if (c < push.cols && token < push.n_tokens) {
    precise float x = 0.0;
    if (is_embedding && push.embedding_words != 0) {
      x = embeddings[push.in_at + (id & ~kIsEmbedding) * push.embedding_words + c];
    } else {
      x = element(token, c) * push.factor;
    }
    if (HAS_POSITIONS == 1) {
      x += positions[push.extra_at + row_position(row) * push.position_words + c];
    }
    y[push.out_at + row * push.cols + c] = x;
  }
}
