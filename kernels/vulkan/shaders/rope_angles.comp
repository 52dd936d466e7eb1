#version 450
#extension GL_GOOGLE_include_directive : require
// kRopeAngles: cos and sin of position * inv_freq, times the amplitude. The angle is the f32
// product. It is reduced to [-pi/4, pi/4] in integers, because driver sin and cos may have errors
// of 2^-11 and are specified for small angles only.
#include "common.glsl"

layout(constant_id = kRopeHasAxesId) const uint HAS_AXES = 0;

layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Frequencies { float inv_freq[]; };
layout(push_constant) uniform Push { RopeAnglesPush push; };

// Returns (cos, sin) of `angle`, 0 <= angle < 2^24.
vec2 cos_sin(float angle) {
  float r = angle;
  uint quadrant = 0;
  if (angle >= 0.5) {
    // angle = mantissa * 2^-shift, and 2 / pi = 0xa2f9836e4e441529 * 2^-64.
    uint bits = floatBitsToUint(angle);
    uint mantissa = (bits & 0x7fffffu) | 0x800000u, shift = 150u - (bits >> 23);
    uint low_high, low_low, high_high, high_low;
    umulExtended(mantissa, 0x4e441529u, low_high, low_low);
    umulExtended(mantissa, 0xa2f9836eu, high_high, high_low);
    // The product has a 64-bit fraction: words (top, middle) and low_low.
    uint carry;
    uint middle = uaddCarry(high_low, low_high, carry), top = high_high + carry;
    // shift is 0 to 24. Extracts the first 32 bits of the fraction, and the whole quarters.
    uint whole = shift == 0u ? top : top >> shift;
    uint fraction = shift == 0u ? middle : middle >> shift | top << 32u - shift;
    quadrant = whole + (fraction >> 31);
    r = float(int(fraction)) * (1.57079632679 / 4294967296.0);
  }
  float z = r * r;
  float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  float c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z -
            0.5 * z + 1.0;
  switch (quadrant & 3u) {
    case 0: return vec2(c, s);
    case 1: return vec2(-s, c);
    case 2: return vec2(-c, -s);
    default: return vec2(s, -c);
  }
}

// The position that a pair of a row turns by.
uint turned_by(uint row, uint pair) {
  uint at = run[kRunAxisPositions];
  if (HAS_AXES == 0 || at == 0) return row_position(row);
  return run[at + row * kAxisWords + run[run[kRunRopeAxes] + push.axes + pair]];
}

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
  if (i < push.pairs) {
    precise float angle = float(turned_by(row + ARN_FIRST_ROW, i)) * inv_freq[push.weights_at + i];
    vec2 turned = cos_sin(abs(angle)) * push.amplitude;
    uint at = push.out_at + row * 2 * push.pairs + i;
    y[at] = turned.x;
    y[at + push.pairs] = angle < 0.0 ? -turned.y : turned.y;
  }
}
