#version 450
#extension GL_GOOGLE_include_directive : require
// Quantises rows of activations to int8 with a zero point and a scale, like QuantizeRow in
// kernels/reference/quantize.cc. One workgroup per row, four elements per invocation. Zero-padded
// after the row's end, where the weights are zero too.
#include "common.glsl"

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 5) buffer Out { uint y[]; };
layout(push_constant) uniform Push { QuantizePush push; };

void main() {
  uint row = gl_WorkGroupID.y, lane = gl_LocalInvocationIndex;
  uint from = push.in_at + row * push.n;
  float low = 0.0, high = 0.0;
  for (uint i = lane; i < push.n; i += WIDTH) {
    low = min(low, x[from + i]);
    high = max(high, x[from + i]);
  }
  low = reduce_min(low);
  high = reduce_max(high);
  precise float scale = low == high ? 1.0 : 255.0 / (high - low);
  precise float scaled_low = low * scale, scaled_high = high * scale;
  precise float error = (-128.0 + scaled_low) + (127.0 + scaled_high);
  precise float zero = error > 0.0 ? -128.0 - scaled_low : 127.0 - scaled_high;
  float zero_point = roundEven(clamp(zero, -128.0, 127.0));
  precise float inverse = 1.0 / scale;
  precise float multiplier = 1.0 / inverse;
  if (lane == 0) {
    y[push.extra_at + 2 * row] = uint(int(zero_point));
    y[push.extra_at + 2 * row + 1] = floatBitsToUint(inverse);
  }
  for (uint word = lane; word < push.row_words; word += WIDTH) {
    uint packed = 0;
    for (uint i = 0; i < 4; ++i) {
      uint c = 4 * word + i;
      if (c < push.n) {
        precise float scaled = x[from + c] * multiplier;
        float q = clamp(scaled, -128.0 - zero_point, 127.0 - zero_point);
        packed |= (uint(int(roundEven(q)) + int(zero_point)) & 255u) << 8 * i;
      }
    }
    y[push.extra_at + push.values_at + row * push.row_words + word] = packed;
  }
}
