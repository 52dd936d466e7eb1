// Quantisation of a row of activations to int8 with a zero point and a scale, like QuantizeRow in
// kernels/reference/quantize.cc. The workgroup has one row; an invocation quantises the vectors of
// four elements that it has written or read before, lane + i * WIDTH. Divisions are correctly rounded,
// so that values round as on the CPU. Shaders that have them elsewhere than in binding 5 define
// ARN_QUANTIZED_BINDING, and ARN_QUANTIZED_AT, ARN_QUANTIZED_VALUES_AT and ARN_QUANTIZED_WORDS: where
// the heads start, the values after them, and the words of a row.
#ifndef ARN_QUANTIZED_BINDING
#define ARN_QUANTIZED_BINDING 5
#define ARN_QUANTIZED_AT push.extra_at
#define ARN_QUANTIZED_VALUES_AT push.values_at
#define ARN_QUANTIZED_WORDS push.row_words
#endif
layout(set = 0, binding = ARN_QUANTIZED_BINDING) buffer QuantizedRows { uint quantized_rows[]; };

struct Quantizer {
  float multiplier, zero_point;
};

// low, high: the least and the largest element of those that this invocation has, or 0.
Quantizer begin_quantizing(uint row, float low, float high) {
  low = reduce_min(low);
  high = reduce_max(high);
  precise float scale = low == high ? 1.0 : divided(255.0, high - low);
  precise float scaled_low = low * scale, scaled_high = high * scale;
  precise float error = (-128.0 + scaled_low) + (127.0 + scaled_high);
  precise float zero = error > 0.0 ? -128.0 - scaled_low : 127.0 - scaled_high;
  precise float inverse = divided(1.0, scale);
  precise float multiplier = divided(1.0, inverse);
  Quantizer quantizer = Quantizer(multiplier, roundEven(clamp(zero, -128.0, 127.0)));
  if (gl_LocalInvocationIndex == 0) {
    quantized_rows[ARN_QUANTIZED_AT + 2 * row] = uint(int(quantizer.zero_point));
    quantized_rows[ARN_QUANTIZED_AT + 2 * row + 1] = floatBitsToUint(inverse);
  }
  return quantizer;
}

// Packs four elements, of which the first n_left exist. The others become zero, as the weights are
// there.
uint quantized_word(Quantizer quantizer, vec4 x, uint n_left) {
  uint packed = 0;
  float zero_point = quantizer.zero_point;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    precise float scaled = x[i] * quantizer.multiplier;
    float q = clamp(scaled, -128.0 - zero_point, 127.0 - zero_point);
    uint byte = uint(int(roundEven(q)) + int(zero_point)) & 255u;
    if (i < n_left) packed |= byte << 8 * i;
  }
  return packed;
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
