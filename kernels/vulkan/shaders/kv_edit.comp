#version 450
#extension GL_GOOGLE_include_directive : require
// KvEdit: copies a page, or converts it to another format, with its keys un-rotated. A workgroup
// processes one head of one layer of one edit. Steps and order as in HeadCopy
// (kernels/kv/kv_host.cc).
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { KvEditPush push; };
#include "kv.glsl"
#include "kv_store.glsl"

layout(constant_id = kEditHasValuesId) const uint HAS_VALUES = 1;

shared uint old_pairs[HEAD_DIM];
shared float lows[HEAD_DIM], highs[HEAD_DIM];

// Loads the row of a slot into head_row. Un-rotates it by the angles at `angles` if half_dim is not
// 0.
void load_row(Block b, uint slot, uint angles, uint half_dim) {
  uint lane = gl_LocalInvocationIndex;
  float scale = slot_scale(b, slot);
  barrier();
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
    if (b.bits != 0u && b.keys) {
      // Uses old_pairs: the page's ranges may already be overwritten.
      uint bytes = row_bytes(b.bits);
      uint value = kv_byte(b.values, slot * bytes + i % bytes) >> i / bytes * b.bits;
      vec2 pair = unpackHalf2x16(old_pairs[i]);
      head_row[i] = pair.y + pair.x * float(value & ((1u << b.bits) - 1u));
    } else {
      head_row[i] = kv_element(b, slot, i) * scale;
    }
  }
  barrier();
  for (uint i = lane; i < half_dim; i += WIDTH) {
    float c = uintBitsToFloat(run[angles + i]), s = uintBitsToFloat(run[angles + half_dim + i]);
    float x = head_row[i], y = head_row[half_dim + i];
    head_row[i] = x * c + y * s;
    head_row[half_dim + i] = y * c - x * s;
  }
  barrier();
}

uint words_of(Block b) {
  uint bytes = b.bits == 0u ? HEAD_DIM * element_bytes(type_of(b.keys)) : row_bytes(b.bits);
  return bytes * PAGE_TOKENS / 4u;
}
uint scale_words_of(Block b) {
  if (b.bits == 0u) return type_of(b.keys) == kTypeInt8 ? PAGE_TOKENS : 0u;
  return b.keys ? PAGE_TOKENS / GROUP_SIZE * HEAD_DIM
                : PAGE_TOKENS * ((HEAD_DIM + GROUP_SIZE - 1u) / GROUP_SIZE);
}

void copy_words(Block from, Block to) {
  uint lane = gl_LocalInvocationIndex;
  if (from.values != to.values) {
    for (uint i = lane; i < words_of(from); i += WIDTH) {
      kv_put(to.values + i, kv_word(from.values + i));
    }
    for (uint i = lane; i < scale_words_of(from); i += WIDTH) {
      kv_put(to.scales + i, kv_word(from.scales + i));
    }
  }
}

// Returns the quantisation range as an f16 pair: 2^bits - 1 steps of `scale` starting at `least`
// cover [low, high] after both are rounded.
uint range_of(float low, float high, uint bits) {
  uint least = f16_from_f32(low);
  float steps = float((1u << bits) - 1u);
  return f16_from_f32(divided(high - unpackHalf2x16(least).x, steps)) | least << 16;
}

// Writes head_row to a slot of a quantised block. Bytes of a row may share a word with another row.
void store_quantised_row(Block b, uint slot) {
  uint bytes = row_bytes(b.bits), most = (1u << b.bits) - 1u;
  for (uint at = gl_LocalInvocationIndex; at < bytes; at += WIDTH) {
    uint packed = 0;
    for (uint i = at, shift = 0; i < HEAD_DIM; i += bytes, shift += b.bits) {
      vec2 pair = unpackHalf2x16(b.keys ? range_of(lows[i], highs[i], b.bits)
                                        : old_pairs[i / GROUP_SIZE]);
      float q = pair.x > 0.0 ? divided(head_row[i] - pair.y, pair.x) : 0.0;
      packed |= uint(roundEven(min(q > 0.0 ? q : 0.0, float(most)))) << shift;
    }
    uint index = slot * bytes + at, place = 8u * (index & 3u);
    kv_merge(b.values + index / 4u, 255u << place, packed << place);
  }
}

void seal_keys(Block from, Block to, uint first, uint end, uint angles, uint half_dim) {
  uint lane = gl_LocalInvocationIndex;
  for (uint slot = first; slot < end; ++slot) {
    load_row(from, slot, angles, half_dim);
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
      lows[i] = slot == first ? head_row[i] : min(lows[i], head_row[i]);
      highs[i] = slot == first ? head_row[i] : max(highs[i], head_row[i]);
    }
  }
  barrier();
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
    kv_put(to.scales + first / GROUP_SIZE * HEAD_DIM + i, range_of(lows[i], highs[i], to.bits));
  }
  for (uint slot = first; slot < end; ++slot) {
    load_row(from, slot, angles, half_dim);
    store_quantised_row(to, slot);
  }
}

void seal_values(Block from, Block to, uint slot) {
  const uint groups = (HEAD_DIM + GROUP_SIZE - 1u) / GROUP_SIZE;
  load_row(from, slot, 0u, 0u);
  for (uint g = gl_LocalInvocationIndex; g < groups; g += WIDTH) {
    float low = head_row[g * GROUP_SIZE], high = low;
    for (uint i = g * GROUP_SIZE; i < min((g + 1u) * GROUP_SIZE, HEAD_DIM); ++i) {
      low = min(low, head_row[i]);
      high = max(high, head_row[i]);
    }
    old_pairs[g] = range_of(low, high, to.bits);
    kv_put(to.scales + slot * groups + g, old_pairs[g]);
  }
  barrier();
  store_quantised_row(to, slot);
}

void edit(bool keys, uint at, uint layer, uint head) {
  uint n_tokens = run[at + kEditTokens], angles = 0, half_dim = 0;
  Block from = block_at(keys, run[at + kEditFrom], layer, head);
  Block to = block_at(keys, run[at + kEditTo], layer, head);
  if (keys && run[at + kEditPositions] != 0u) {
    uint of_layer = run[kRunLayers] + (push.layers + layer) * kLayerWords;
    angles = run[of_layer + kLayerAngles];
    half_dim = run[of_layer + kLayerPairs];
  }
  // The branches below are uniform across the workgroup.
  if (from.bits == to.bits && half_dim == 0u) {
    copy_words(from, to);
  } else if (to.bits == 0u) {
    for (uint first = 0; first < n_tokens; ++first) {
      if (from.bits != 0u && keys && first % GROUP_SIZE == 0u) {
        barrier();
        for (uint i = gl_LocalInvocationIndex; i < HEAD_DIM; i += WIDTH) {
          old_pairs[i] = kv_word(from.scales + first / GROUP_SIZE * HEAD_DIM + i);
        }
      }
      load_row(from, first, angles, half_dim);
      store_row(to, first);
    }
  } else {
    for (uint first = 0; first < n_tokens; first += GROUP_SIZE) {
      uint end = min(first + GROUP_SIZE, n_tokens);
      if (keys) {
        barrier();
        for (uint i = gl_LocalInvocationIndex; from.bits != 0u && i < HEAD_DIM; i += WIDTH) {
          old_pairs[i] = kv_word(from.scales + first / GROUP_SIZE * HEAD_DIM + i);
        }
        seal_keys(from, to, first, end, angles, half_dim);
      } else {
        for (uint slot = first; slot < end; ++slot) seal_values(from, to, slot);
      }
    }
  }
}

void main() {
  uint head = gl_WorkGroupID.x, layer = gl_WorkGroupID.z;
  uint at = run[kRunEdits] + gl_WorkGroupID.y * kEditWords;
  edit(true, at, layer, head);
  if (HAS_VALUES == 0) return;
  barrier();
  edit(false, at, layer, head);
}
