// Elements of the KV pages of one group. Include after the declaration of push constants with
// ARN_PUSH_KV, or define ARN_READS_ACTIVE (kv_pages.glsl) and ARN_ACTIVE_POOL.
#include "kv_pages.glsl"
#ifndef ARN_ACTIVE_POOL
#define ARN_ACTIVE_POOL push.active_pool
#endif
const uint kDimQuads = (HEAD_DIM + 3) / 4;
#define ARN_NONE uintBitsToFloat(0xff800000u)  // -infinity: the score of no key

// Returns the scale of a slot; 1 if the format has none per slot.
float slot_scale(Block b, uint slot) {
  if (b.bits != 0u || type_of(b.keys) != kTypeInt8) return 1.0;
  return uintBitsToFloat(kv_word(b.scales + slot));
}

// Elements [i, i + 4) of a slot of an active page, not yet multiplied by slot_scale(); HEAD_DIM and i
// are multiples of 4.
vec4 active_elements(Block b, uint slot, uint i) {
  uint type = type_of(b.keys), at = slot * HEAD_DIM + i;
  if (type == kTypeF32) {
    at += b.values;
    return uintBitsToFloat(uvec4(kv_word(at), kv_word(at + 1), kv_word(at + 2), kv_word(at + 3)));
  }
  if (type == kTypeF16) {
    at = b.values + at / 2;
    return vec4(unpackHalf2x16(kv_word(at)), unpackHalf2x16(kv_word(at + 1)));
  }
  int w = int(kv_word(b.values + at / 4));
  return vec4(bitfieldExtract(w, 0, 8), bitfieldExtract(w, 8, 8), bitfieldExtract(w, 16, 8),
              bitfieldExtract(w, 24, 8));
}

#ifdef ARN_READS_ACTIVE
Block block_at(bool keys, uint page, uint layer, uint head) {
  return active_block(ARN_ACTIVE_POOL, keys, page, layer, head);
}
vec4 kv_elements(Block b, uint slot, uint i) { return active_elements(b, slot, i); }
#else
uint kv_byte(uint base, uint i) { return kv_word(base + i / 4) >> 8 * (i & 3u) & 255u; }
float kv_half(uint base, uint i) {
  return unpackHalf2x16(kv_word(base + i / 2) >> 16 * (i & 1u)).x;
}

Block block_at(bool keys, uint page, uint layer, uint head) {
  if (HAS_QUANTISED == 0 || (page & kQuantisedPageBit) == 0u) {
    return active_block(ARN_ACTIVE_POOL, keys, page, layer, head);
  }
  uint bits = keys ? QUANTISED_K_BITS : QUANTISED_V_BITS, scales = PAGE_TOKENS;
  uint bytes = HEAD_DIM * element_bytes(type_of(keys));
  if (bits != 0u) {
    bytes = row_bytes(bits);
    scales = keys ? (PAGE_TOKENS + GROUP_SIZE - 1u) / GROUP_SIZE * HEAD_DIM
                  : PAGE_TOKENS * ((HEAD_DIM + GROUP_SIZE - 1u) / GROUP_SIZE);
  }
  Block b = block_in(push.quantised_pool, keys, page & ~kQuantisedPageBit, layer, head,
                     bytes * PAGE_TOKENS / 4u, scales);
  b.bits = bits;
  return b;
}

// Index of the (scale, least) pair of element i of a quantised slot.
uint pair_index(Block b, uint slot, uint i) {
  return b.keys ? slot / GROUP_SIZE * HEAD_DIM + i
                : slot * ((HEAD_DIM + GROUP_SIZE - 1u) / GROUP_SIZE) + i / GROUP_SIZE;
}

// Element i of a slot, not yet multiplied by slot_scale().
float kv_element(Block b, uint slot, uint i) {
  if (b.bits != 0u) {
    uint bytes = row_bytes(b.bits);
    uint value = kv_byte(b.values, slot * bytes + i % bytes) >> i / bytes * b.bits;
    vec2 pair = unpackHalf2x16(kv_word(b.scales + pair_index(b, slot, i)));
    return pair.y + pair.x * float(value & ((1u << b.bits) - 1u));
  }
  uint type = type_of(b.keys), at = slot * HEAD_DIM + i;
  if (type == kTypeF32) return uintBitsToFloat(kv_word(b.values + at));
  if (type == kTypeF16) return kv_half(b.values, at);
  return float(bitfieldExtract(int(kv_word(b.values + at / 4)), int(8 * (at & 3u)), 8));
}

// True if each four values of a quantised row are in one word, and within a range.
bool quantised_in_words(Block b) {
  return HEAD_DIM % (32u / b.bits) == 0u && (b.keys || GROUP_SIZE % 4u == 0u);
}

// Elements [i, i + 4), zero-padded; i is a multiple of 4.
vec4 kv_elements(Block b, uint slot, uint i) {
  if (HEAD_DIM % 4 == 0 && (HAS_QUANTISED == 0 || b.bits == 0u)) return active_elements(b, slot, i);
  if (HAS_QUANTISED == 1 && b.bits != 0u && quantised_in_words(b)) {
    // The four values are in the four bytes of a word. Ranges: of each channel of keys; of values,
    // one for all four.
    uint bytes = row_bytes(b.bits), to = b.scales + pair_index(b, slot, i);
    uint word = kv_word(b.values + (slot * bytes + i % bytes) / 4) >> i / bytes * b.bits;
    uvec4 codes = (uvec4(word) >> uvec4(0, 8, 16, 24)) & ((1u << b.bits) - 1u);
    vec2 pair = unpackHalf2x16(kv_word(to));
    vec4 scale = vec4(pair.x), least = vec4(pair.y);
    [[unroll]] for (uint j = 1; j < 4; ++j) {
      if (!b.keys) break;
      pair = unpackHalf2x16(kv_word(to + j));
      scale[j] = pair.x;
      least[j] = pair.y;
    }
    return least + scale * vec4(codes);
  }
  vec4 x = vec4(0.0);
  for (uint j = 0; j < 4; ++j) {
    if (i + j < HEAD_DIM) x[j] = kv_element(b, slot, i + j);
  }
  return x;
}
#endif
