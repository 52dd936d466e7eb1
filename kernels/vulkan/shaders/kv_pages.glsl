// The KV pages (kernels/contract/kv_view.h) of one group, addressed in words from the start of the KV
// region, which is bound as windows of 2^WINDOW_SHIFT words: their words, and where heads are.
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

// With ARN_READS_ACTIVE workgroups read what others of their dispatch write: active pages, in one
// window, of heads whose elements are multiples of four.
#ifdef ARN_READS_ACTIVE
layout(set = 0, binding = 6) coherent buffer Kv0 { uint kv0[]; };
#else
layout(set = 0, binding = 6) buffer Kv0 { uint kv0[]; };
#endif
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
#ifdef ARN_READS_ACTIVE
  return kv0[at];
#else
  uint word = 0;
#define ARN_LOAD(WORDS, I) word = WORDS[I]
  ARN_IN_WINDOW(ARN_LOAD)
  return word;
#endif
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

// Returns a head's block in a page of the active pool.
Block active_block(KvPool pool, bool keys, uint page, uint layer, uint head) {
  uint bytes = HEAD_DIM * element_bytes(type_of(keys));
  Block b = block_in(pool, keys, page, layer, head, bytes * PAGE_TOKENS / 4u, PAGE_TOKENS);
  b.bits = 0u;
  return b;
}

// Start of a sequence's table of a group, and the page of a position.
uint table_at(uint sequence, uint group) {
  return sequence_at(sequence) + kSequenceHead + group * kGroupWords;
}
uint page_of(uint table, uint position) {
  return run[run[table + kGroupTable] + position / PAGE_TOKENS - run[table + kGroupFirstPage]];
}
