#version 450
#extension GL_GOOGLE_include_directive : require
// kClamp: clamps columns in place. One invocation per element.
#include "common.glsl"

layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Ranges { float ranges[]; };  // low and high of each
layout(push_constant) uniform Push { ClampPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.n) {
    uint range = push.weights_at + 2 * push.range;
    uint at = push.out_at + row * push.width + push.first + i;
    y[at] = min(max(y[at], ranges[range]), ranges[range + 1]);
  }
}
