#version 450
#extension GL_GOOGLE_include_directive : require
// kEmbed: the token's row times a factor, or an embedding in its place, plus the position's row.
// One invocation per element. With a norm that follows, one workgroup per row.
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"

layout(constant_id = kEmbedTypeId) const uint TYPE = 0;
layout(constant_id = kEmbedHasPositionsId) const uint HAS_POSITIONS = 0;

layout(set = 0, binding = 1) readonly buffer Embeddings { float embeddings[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 5) readonly buffer Positions { float positions[]; };
layout(push_constant) uniform Push { EmbedPush push; };

// Not read-only: dispatches of several parts of the table bind a counter where there is no norm.
layout(set = 0, binding = 7) buffer NormWeight { vec4 norm_weight_quads[]; };
layout(set = 0, binding = 8) buffer NormBias { vec4 norm_bias_quads[]; };
vec4 norm_weight(uint quad) { return norm_weight_quads[push.norm_at / 4 + quad]; }
vec4 norm_bias(uint quad) { return norm_bias_quads[push.norm_bias_at / 4 + quad]; }
#include "norm_row.glsl"

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

// Writes element c of a row. token: of the bound slice, which has it.
void embed(uint row, uint id, uint token, uint c) {
  precise float x = 0.0;
  if ((id & kIsEmbedding) != 0 && push.embedding_words != 0) {
    x = embeddings[push.in_at + (id & ~kIsEmbedding) * push.embedding_words + c];
  } else {
    x = element(token, c) * push.factor;
  }
  if (HAS_POSITIONS == 1) {
    x += positions[push.extra_at + row_position(row) * push.position_words + c];
  }
  y[push.out_at + row * push.cols + c] = x;
}

void main() {
  uint row = gl_WorkGroupID.y, id = row_token(row);
  uint token = ((id & kIsEmbedding) != 0 ? 0 : id) - push.first_token;
  if (token >= push.n_tokens) return;
  if (NORMS == 0) {
    if (gl_GlobalInvocationID.x < push.cols) embed(row, id, token, gl_GlobalInvocationID.x);
    return;
  }
  // An invocation writes the vectors of four elements that it normalises.
  for (uint first = 4 * gl_LocalInvocationIndex; first < push.cols; first += 4 * WIDTH) {
    for (uint c = first; c < first + 4; ++c) embed(row, id, token, c);
  }
  normalise_row(row, push.cols);
}
