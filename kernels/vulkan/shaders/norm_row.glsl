// norm.comp, and quantize.comp, at the end of a shader that has written the rows, at push.out_at of
// binding 2: y. All invocations of the workgroup take part. Include after the declarations of y and
// of push constants with ARN_PUSH_NEXT. Define norm_weight(quad) and norm_bias(quad).
//
// The norm that follows (kNorm, or that of kLogits); rows are multiples of four elements. 0: none.
layout(constant_id = kNextNormsId) const uint NORMS = 0;
layout(constant_id = kNextNormIsLayerId) const uint NORM_IS_LAYER = 0;
layout(constant_id = kNextNormAddsId) const uint NORM_ADDS = 0;
layout(constant_id = kNextQuantizesId) const uint QUANTIZES = 0;

layout(set = 0, binding = 6) buffer Normed { vec4 normed_quads[]; };
#define ARN_QUANTIZED_BINDING 9
#define ARN_QUANTIZED_AT push.next_at
#define ARN_QUANTIZED_VALUES_AT push.next_values_at
#define ARN_QUANTIZED_WORDS push.next_words
#include "quantize.glsl"

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
vec4 out_quad(uint at) { return vec4(y[at], y[at + 1], y[at + 2], y[at + 3]); }

// n: elements of a row.
void quantise_row(uint row, uint n) {
  const uint from = push.out_at + row * n;
  float low = 0.0, high = 0.0;
  for (uint c = 4 * gl_LocalInvocationIndex; c < n; c += 4 * WIDTH) {
    vec4 value = out_quad(from + c);
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  ARN_QUANTIZE_ROW(row, n, low, high, out_quad(from + c))
}

void normalise_row(uint row, uint n) {
  const uint quads = n / 4, lane = gl_LocalInvocationIndex;
  const uint from = push.out_at + row * n, to = (push.normed_at + row * n) / 4;
  float mean = 0.0;
  if (NORM_IS_LAYER == 1) {
    float sum = 0.0;
    for (uint q = lane; q < quads; q += WIDTH) sum += sum_of(out_quad(from + 4 * q));
    mean = reduce_add(sum) / float(n);
  }
  float square = 0.0;
  for (uint q = lane; q < quads; q += WIDTH) {
    vec4 centred = out_quad(from + 4 * q) - mean;
    square += sum_of(centred * centred);
  }
  float inverse = 1.0 / sqrt(reduce_add(square) / float(n) + push.epsilon);
  float low = 0.0, high = 0.0;
  for (uint q = lane; q < quads; q += WIDTH) {
    vec4 value = (out_quad(from + 4 * q) - mean) * inverse * norm_weight(q);
    if (NORM_IS_LAYER == 1) value += norm_bias(q);
    if (NORM_ADDS == 1) value += normed_quads[to + q];
    normed_quads[to + q] = value;
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  if (QUANTIZES == 1) ARN_QUANTIZE_ROW(row, n, low, high, normed_quads[to + c / 4])
}
