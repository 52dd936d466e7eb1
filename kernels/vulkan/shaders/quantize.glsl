// Quantisation of a row of activations. The workgroup has one row; an invocation quantises the vectors
// of four elements that it has written or read before, lane + i * WIDTH. Shaders that have them
// elsewhere than in binding 5 define ARN_QUANTIZED_BINDING, and ARN_QUANTIZED_AT,
// ARN_QUANTIZED_VALUES_AT and ARN_QUANTIZED_WORDS: where the heads start, the values after them, and
// the words of a row.
#ifndef ARN_QUANTIZED_BINDING
#define ARN_QUANTIZED_BINDING 5
#define ARN_QUANTIZED_AT push.extra_at
#define ARN_QUANTIZED_VALUES_AT push.values_at
#define ARN_QUANTIZED_WORDS push.row_words
#endif
layout(set = 0, binding = ARN_QUANTIZED_BINDING) buffer QuantizedRows { uint quantized_rows[]; };

#include "quantizer.glsl"

// low, high: the least and the largest element of those that this invocation has, or 0.
Quantizer begin_quantizing(uint row, float low, float high) {
  Quantizer quantizer = quantizer_of(reduce_min(low), reduce_max(high));
  if (gl_LocalInvocationIndex == 0) {
    quantized_rows[ARN_QUANTIZED_AT + 2 * row] = uint(int(quantizer.zero_point));
    quantized_rows[ARN_QUANTIZED_AT + 2 * row + 1] = floatBitsToUint(quantizer.scale);
  }
  return quantizer;
}

// Quantises a row of n elements whose least and largest are low and high. VALUE: elements [c, c + 4)
// as this invocation has written or read them before, for a variable c.
#define ARN_QUANTIZE_ROW(ROW, N, LOW, HIGH, VALUE)                                           \
  {                                                                                          \
    Quantizer quantizer = begin_quantizing(ROW, LOW, HIGH);                                  \
    uint words = ARN_QUANTIZED_WORDS;                                                        \
    uint rows_at = ARN_QUANTIZED_AT + ARN_QUANTIZED_VALUES_AT + ROW * words;                 \
    for (uint c = 4 * gl_LocalInvocationIndex; c < 4 * words; c += 4 * WIDTH) {              \
      vec4 value = c < N ? VALUE : vec4(0.0);                                                \
      quantized_rows[rows_at + c / 4] = quantized_word(quantizer, value, c < N ? N - c : 0); \
    }                                                                                        \
  }
