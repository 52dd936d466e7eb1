// The KV pages (kernels/contract/kv_view.h) of one group, addressed in words from the start of the KV
// region. The region is bound as windows of 2^WINDOW_SHIFT words. Include after the declaration of
// push constants with ARN_PUSH_KV.
layout(constant_id = kKvWindowsId) const uint N_WINDOWS = 1;
layout(constant_id = kKvWindowShiftId) const uint WINDOW_SHIFT = 31;
layout(constant_id = kKvKTypeId) const uint K_TYPE = 0;
layout(constant_id = kKvVTypeId) const uint V_TYPE = 0;
layout(constant_id = kKvHeadDimId) const uint HEAD_DIM = 64;
layout(constant_id = kKvPageTokensId) const uint PAGE_TOKENS = 32;
layout(constant_id = kKvQuantisedKBitsId) const uint QUANTISED_K_BITS = 0;
layout(constant_id = kKvQuantisedVBitsId) const uint QUANTISED_V_BITS = 0;
layout(constant_id = kKvGroupSizeId) const uint GROUP_SIZE = 1;
layout(constant_id = kKvHasQuantisedId) const uint HAS_QUANTISED = 0;

layout(set = 0, binding = 6) buffer Kv0 { uint kv0[]; };
layout(set = 0, binding = 7) buffer Kv1 { uint kv1[]; };
layout(set = 0, binding = 8) buffer Kv2 { uint kv2[]; };
layout(set = 0, binding = 9) buffer Kv3 { uint kv3[]; };

#define ARN_IN_WINDOW(ACTION)                                      \
  if (N_WINDOWS == 1) {                                            \
    ACTION(kv0, at);                                               \
  } else {                                                         \
    uint window = at >> WINDOW_SHIFT, in_window = at & ((1u << WINDOW_SHIFT) - 1u); \
    switch (window) {                                              \
      case 0: ACTION(kv0, in_window); break;                       \
      case 1: ACTION(kv1, in_window); break;                       \
      case 2: ACTION(kv2, in_window); break;                       \
      default: ACTION(kv3, in_window); break;                      \
    }                                                              \
  }

uint kv_word(uint at) {
  uint word = 0;
#define ARN_LOAD(WORDS, I) word = WORDS[I]
  ARN_IN_WINDOW(ARN_LOAD)
  return word;
}
void kv_put(uint at, uint word) {
#define ARN_STORE(WORDS, I) WORDS[I] = word
  ARN_IN_WINDOW(ARN_STORE)
}
// Replaces the bits of `mask` by those of `word`. Other invocations may write the other bits
// concurrently.
void kv_merge(uint at, uint mask, uint word) {
#define ARN_MERGE(WORDS, I)        \
  {                                \
    atomicAnd(WORDS[I], ~mask);    \
    atomicOr(WORDS[I], word);      \
  }
  ARN_IN_WINDOW(ARN_MERGE)
}
uint kv_byte(uint base, uint i) { return kv_word(base + i / 4) >> 8 * (i & 3u) & 255u; }
float kv_half(uint base, uint i) {
  return unpackHalf2x16(kv_word(base + i / 2) >> 16 * (i & 1u)).x;
}

// K or V of one head in one layer's part of a page: start of its values and scales.
struct Block {
  uint values, scales, bits;
  bool keys;
};
uint type_of(bool keys) { return keys ? K_TYPE : V_TYPE; }
uint element_bytes(uint type) { return type == kTypeF32 ? 4u : type == kTypeF16 ? 2u : 1u; }
uint row_bytes(uint bits) { return (HEAD_DIM * bits + 7u) / 8u; }

Block block_in(KvPool pool, bool keys, uint page, uint layer, uint head, uint head_words,
               uint head_scales) {
  Block b;
  b.keys = keys;
  uint part = pool.at + page * pool.page_stride + layer * pool.layer_stride;
  b.values = part + (keys ? 0u : pool.v_at) + head * head_words;
  b.scales = part + (keys ? pool.k_scales_at : pool.v_scales_at) + head * head_scales;
  return b;
}

Block block_at(bool keys, uint page, uint layer, uint head) {
  Block b;
  uint bytes = HEAD_DIM * element_bytes(type_of(keys));
  if (HAS_QUANTISED == 1 && (page & kQuantisedPageBit) != 0u) {
    uint bits = keys ? QUANTISED_K_BITS : QUANTISED_V_BITS, scales = PAGE_TOKENS;
    if (bits != 0u) {
      bytes = row_bytes(bits);
      scales = keys ? (PAGE_TOKENS + GROUP_SIZE - 1u) / GROUP_SIZE * HEAD_DIM
                    : PAGE_TOKENS * ((HEAD_DIM + GROUP_SIZE - 1u) / GROUP_SIZE);
    }
    b = block_in(push.quantised_pool, keys, page & ~kQuantisedPageBit, layer, head,
                 bytes * PAGE_TOKENS / 4u, scales);
    b.bits = bits;
  } else {
    b = block_in(push.active_pool, keys, page, layer, head, bytes * PAGE_TOKENS / 4u, PAGE_TOKENS);
    b.bits = 0u;
  }
  return b;
}

// Returns the scale of a slot; 1 if the format has none per slot.
float slot_scale(Block b, uint slot) {
  if (b.bits != 0u || type_of(b.keys) != kTypeInt8) return 1.0;
  return uintBitsToFloat(kv_word(b.scales + slot));
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
  uint type = type_of(b.keys);
  if (HEAD_DIM % 4 == 0 && (HAS_QUANTISED == 0 || b.bits == 0u)) {
    uint at = slot * HEAD_DIM + i;
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

// Start of a sequence's table of a group, and the page of a position.
uint table_at(uint sequence, uint group) {
  return sequence_at(sequence) + kSequenceHead + group * kGroupWords;
}
uint page_of(uint table, uint position) {
  return run[run[table + kGroupTable] + position / PAGE_TOKENS - run[table + kGroupFirstPage]];
}
