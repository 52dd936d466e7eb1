#version 450
#extension GL_GOOGLE_include_directive : require
// kFeatures of a part of wider rows: copies columns. One invocation per element.
#include "common.glsl"

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(push_constant) uniform Push { ColumnsPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.width) {
    y[push.out_at + row * push.width + i] = x[push.in_at + row * push.stride + push.first + i];
  }
}
