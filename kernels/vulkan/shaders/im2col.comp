#version 450
#extension GL_GOOGLE_include_directive : require
// kIm2col: im2col, zero-padded. One invocation per element.
#include "common.glsl"

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(push_constant) uniform Push { Im2colPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, out_width = push.taps * push.width;
  if (i < out_width) {
    // Rows before the first wrap around to large unsigned values and fail the check.
    uint from = row * push.stride + i / push.width - push.taps / 2;
    bool exists = from < RUN_ROWS * push.row_factor * push.stride;
    y[push.out_at + row * out_width + i] =
        exists ? x[push.in_at + from * push.width + i % push.width] : 0.0;
  }
}
