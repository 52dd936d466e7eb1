// Quantisation of f32 to int8 with a zero point and a scale, like QuantizeRow in
// kernels/reference/quantize.cc. Divisions are correctly rounded, so that values round as on the CPU.
struct Quantizer {
  float multiplier, zero_point;
  float scale;  // of a step
};

// low, high: the least and the largest element, or 0.
Quantizer quantizer_of(float low, float high) {
  precise float scale = low == high ? 1.0 : divided(255.0, high - low);
  precise float scaled_low = low * scale, scaled_high = high * scale;
  precise float error = (-128.0 + scaled_low) + (127.0 + scaled_high);
  precise float zero = error > 0.0 ? -128.0 - scaled_low : 127.0 - scaled_high;
  precise float inverse = divided(1.0, scale);
  precise float multiplier = divided(1.0, inverse);
  return Quantizer(multiplier, roundEven(clamp(zero, -128.0, 127.0)), inverse);
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
