#version 450
#extension GL_GOOGLE_include_directive : require
// kPool: several rows become one. One invocation per element of a pooled row.
#include "common.glsl"
#include "math.glsl"

// PoolKind (kernels/contract/step.h).
const uint kFirst = 0, kLast = 1, kMean = 2, kMax = 3, kMeanSqrt = 4, kWeightedMean = 5;
const uint kConcat = 6;
layout(constant_id = kPoolKindId) const uint MODE = kMean;
layout(constant_id = kPoolHasShiftId) const uint HAS_SHIFT = 0;
layout(constant_id = kPoolHasScaleId) const uint HAS_SCALE = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Shift { float shift[]; };
layout(set = 0, binding = 4) readonly buffer Scale { float scale[]; };
layout(push_constant) uniform Push { PoolPush push; };

float at(uint row, uint c) { return x[push.in_at + row * push.width + c]; }

// Adds with the rounding errors of the sums so far: the host adds in double (Kahan, "Further
// remarks on reducing truncation errors", 1965).
float mean(uint first, uint n, uint c) {
  float sum = 0.0, error = 0.0;
  for (uint r = 0; r < n; ++r) {
    float weight = MODE == kWeightedMean ? float(r + 1) : 1.0;
    precise float term = weight * at(first + r, c) - error;
    precise float next = sum + term;
    precise float taken = next - sum;
    precise float missed = taken - term;
    error = missed;
    sum = next;
  }
  float count = float(n);
  float divisor = MODE == kMeanSqrt       ? sqrt(count)
                  : MODE == kWeightedMean ? count * (count + 1.0) * 0.5
                                          : count;
  return divided(sum, divisor);
}

float pooled(uint first, uint n, uint c) {
  if (MODE == kConcat) return at(first + c / push.width, c % push.width);
  if (MODE == kFirst) return at(first, c);
  if (MODE == kLast) return at(first + n - 1, c);
  if (MODE != kMax) return mean(first, n, c);
  float largest = at(first, c);
  for (uint r = 1; r < n; ++r) largest = max(largest, at(first + r, c));
  return largest;
}

void main() {
  uint c = gl_GlobalInvocationID.x, i = gl_WorkGroupID.y;
  if (c >= push.out_width) return;
  uint first = i * push.n_rows, n = push.n_rows;
  if (push.n_rows == 0) {
    first = run[sequence_at(i) + kSequenceFirstRow];
    n = run[sequence_at(i) + kSequenceRows];
  }
  precise float value = pooled(first, n, c) * push.factor;
  if (HAS_SHIFT == 1) value -= shift[push.weights_at + c];
  if (HAS_SCALE == 1) value *= scale[push.rows_at + c];
  y[push.out_at + i * push.out_width + c] = value;
}
