#version 450
#extension GL_GOOGLE_include_directive : require
// kAddPositions: adds the position's row. One invocation per element.
#include "common.glsl"

layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Positions { float positions[]; };
layout(push_constant) uniform Push { AddPositionsPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.width) {
    y[push.out_at + row * push.width + i] +=
        positions[push.weights_at + row_position(row) * push.position_words + i];
  }
}
