#version 450
#extension GL_GOOGLE_include_directive : require
// kMultiply: multiplies in place by columns of another value, and by a constant. One invocation per
// element.
#include "common.glsl"

layout(constant_id = kMultiplyHasValueId) const uint HAS_VALUE = 0;
layout(constant_id = kMultiplyHasScaleId) const uint HAS_SCALE = 0;

layout(set = 0, binding = 1) readonly buffer By { float by[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Scale { float scale[]; };
layout(push_constant) uniform Push { MultiplyPush push; };

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.width) {
    precise float factor = push.factor;
    if (HAS_SCALE == 1) factor *= scale[push.weights_at];
    if (HAS_VALUE == 1) factor *= by[push.in_at + row * push.stride + push.first + i];
    y[push.out_at + row * push.width + i] *= factor;
  }
}
