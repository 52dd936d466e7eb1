#version 450
#extension GL_GOOGLE_include_directive : require
// kAddEmbeddings: adds columns of the embeddings to the rows that have one. One invocation per
// element.
#include "common.glsl"

layout(set = 0, binding = 1) readonly buffer Embeddings { float embeddings[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(push_constant) uniform Push { AddEmbeddingsPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, id = row_token(row);
  if (i < push.width && (id & kIsEmbedding) != 0) {
    uint from = push.in_at + (id & ~kIsEmbedding) * push.stride + push.first;
    y[push.out_at + row * push.width + i] += embeddings[from + i];
  }
}
