#version 450
#extension GL_GOOGLE_include_directive : require
// kScaleRow: multiplies y in place by the sigmoid of its row's scale. One invocation per element.
#include "common.glsl"
#include "math.glsl"

layout(set = 0, binding = 1) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(push_constant) uniform Push { ScaleRowPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.n) {
    y[push.out_at + row * push.n + i] *= activated(kSigmoid, scale[push.in_at + row]);
  }
}
