// Writes a head's row to an active page. All invocations of the workgroup take part. `head_row`
// must be written before the last barrier.
shared float head_row[HEAD_DIM == 0 ? 1 : HEAD_DIM];

uint stored_bits(uint type, float x, float scale) {
  if (type == kTypeF32) return floatBitsToUint(x);
  if (type == kTypeF16) return f16_from_f32(x);
  // Clamped from below first: NaN becomes -127.
  float q = scale == 0.0 ? 0.0 : divided(x, scale);
  return uint(int(roundEven(min(q > -127.0 ? q : -127.0, 127.0)))) & 255u;
}

void store_row(Block b, uint slot) {
  uint type = type_of(b.keys), lane = gl_LocalInvocationIndex;
  float scale = 1.0;
  if (type == kTypeInt8) {
    float largest = 0.0;
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) largest = max(largest, abs(head_row[i]));
    scale = divided(reduce_max(largest), 127.0);
    if (lane == 0) kv_put(b.scales + slot, floatBitsToUint(scale));
  }
  uint size = element_bytes(type), per_word = 4u / size;
  if (HEAD_DIM * size % 4u == 0u) {
    for (uint w = lane; w < HEAD_DIM / per_word; w += WIDTH) {
      uint word = 0;
      for (uint j = 0; j < per_word; ++j) {
        word |= stored_bits(type, head_row[w * per_word + j], scale) << 8u * size * j;
      }
      kv_put(b.values + slot * (HEAD_DIM / per_word) + w, word);
    }
  } else {
    // Rows share words with their neighbours, which other workgroups may write.
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
      uint at = slot * HEAD_DIM + i, shift = at % per_word * 8u * size;
      uint mask = (size == 1u ? 255u : 65535u) << shift;
      kv_merge(b.values + at / per_word, mask, stored_bits(type, head_row[i], scale) << shift);
    }
  }
}
