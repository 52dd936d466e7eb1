// Elements of weights in the device layout (kernels/vulkan/device/device_weight.h).
layout(set = 0, binding = 3) readonly buffer WeightWords { uint weight_words[]; };
layout(set = 0, binding = 3) readonly buffer WeightQuads { uvec4 weight_quads[]; };
layout(set = 0, binding = 4) readonly buffer RowWords { uint row_words[]; };

// Metadata of a weight row (kRowHeadWords).
float row_scale(uint at) { return uintBitsToFloat(row_words[at]); }
float row_bias(uint at) { return uintBitsToFloat(row_words[at + 1]); }

// Elements per 16 bytes.
uint per_quad(uint type) {
  return type == kTypeF32 ? 4u : type == kTypeInt8 ? 16u : type == kTypeInt4 ? 32u : 8u;
}

vec2 pair_of(uint type, uint word) {
  return type == kTypeF16 ? unpackHalf2x16(word)
                      : vec2(uintBitsToFloat(word << 16), uintBitsToFloat(word & 0xffff0000u));
}

// bytes_of: four int8 values. nibble_of: element i (0 to 7) of an int4 word, minus the 8 it is
// stored with; byte i has element i in its low half and element 4 + i in its high half.
ivec4 bytes_of(uint word) {
  int w = int(word);
  return ivec4(bitfieldExtract(w, 0, 8), bitfieldExtract(w, 8, 8), bitfieldExtract(w, 16, 8),
               bitfieldExtract(w, 24, 8));
}
int nibble_of(uint word, uint i) { return int(word >> (8 * (i & 3u) + 4 * (i >> 2)) & 15u) - 8; }

float bf16_at(uint base, uint index) {
  uint word = row_words[base + index / 2];
  return uintBitsToFloat((index & 1u) == 0u ? word << 16 : word & 0xffff0000u);
}
