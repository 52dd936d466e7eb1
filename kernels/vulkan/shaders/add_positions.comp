#version 450
#extension GL_GOOGLE_include_directive : require
// kAddPositions: adds the rows of the token type and of the position. One invocation per element.
#include "common.glsl"

layout(constant_id = kAddHasPositionsId) const uint HAS_POSITIONS = 1;
layout(constant_id = kAddHasTypesId) const uint HAS_TYPES = 0;

layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Positions { float positions[]; };
layout(set = 0, binding = 4) readonly buffer Types { float types[]; };
layout(push_constant) uniform Push { AddPositionsPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  uint in_run = row + ARN_FIRST_ROW, position = row_position(in_run);
  if (i < push.width) {
    precise float value = y[push.out_at + row * push.width + i];
    if (HAS_TYPES == 1) {
      uint n_first = run[sequence_at(row_sequence(in_run)) + kSequenceFirstType];
      value += types[push.rows_at + (position < n_first ? 0 : push.type_words) + i];
    }
    if (HAS_POSITIONS == 1) {
      value += positions[push.weights_at + position * push.position_words + i];
    }
    y[push.out_at + row * push.width + i] = value;
  }
}
