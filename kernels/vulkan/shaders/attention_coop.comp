#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// attention_tile.comp with f16 cooperative matrices, whose sums are f32, on pages that are not f32.
// Each subgroup has COOP_M pairs, and all keys of a tile, so that its softmax and its sums of
// values are its own.
//
// Keys and values are in shared memory as f16: the codes of int8 pages, without their scales, and
// the elements of f16 pages are exact there. Scales of keys multiply the scores. Those of values
// multiply the weights before they are rounded, and each row of weights is divided by a power of
// two, the largest scale that the row has seen, so that small values do not vanish. Queries are
// divided by the power of two of their largest element. Softmax and scales are f32. The bound of
// the error is in docs/decisions/0026-attention-by-matrices.md.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { AttentionPush push; };
#include "kv.glsl"
#include "attention.glsl"
#include "attention_pairs.glsl"

// Shape of a matrix: rows, columns, and what is summed. PAIRS is a multiple of COOP_M, KEYS of 16,
// a subgroup of COOP_M invocations.
layout(constant_id = kAttentionCoopMId) const uint COOP_M = 8;
layout(constant_id = kAttentionCoopNId) const uint COOP_N = 8;
layout(constant_id = kAttentionCoopKId) const uint COOP_K = 8;

const uint kSubgroups = PAIRS / COOP_M, kLanes = WIDTH / kSubgroups;
// Softmax: kParts invocations have a pair, with every kParts-th word of two keys.
const uint kParts = kLanes / COOP_M, kWordsPerPart = KEYS / 2 / kParts;
// Heads are padded with zeros.
const uint kDim = (HEAD_DIM + 15) / 16 * 16, kTileQuads = kDim / 4;
const uint kStaged = (KEYS * kTileQuads + WIDTH - 1) / WIDTH;
// From one key to the next, and from one pair to the next, in words: four of padding, so that
// neighbours are in different banks. Matrices begin at multiples of 16 bytes.
const uint kTilePitch = kDim / 2 + 4;
const uint kStripPitch = (KEYS / 2 < COOP_N ? KEYS / 2 + COOP_N : KEYS) + 4;
const uint kSums = kDim / COOP_N;
// The exponent of a scale of values: of 2^-126 at least, and with a finite inverse.
const uint kLeastExponent = 1, kMostExponent = 253;

shared uint tile[KEYS * kTilePitch];     // keys, then values: two of f16 in a word
// A pair has: its query; scores; weights, and what its sums are multiplied by; outputs.
shared uint strips[PAIRS * kStripPitch];
shared float key_scales[KEYS], value_scales[KEYS];
shared uint are_infinite[KEYS];        // 1: a value of the key is infinite, or not a number
shared vec2 found_by[PAIRS * kParts];  // by each part of a pair

uvec2 staged[kStaged];
float staged_scales[kStaged];

// This invocation's pair has: the largest score, the sum of its part of the weights, and the
// exponent of the power of two that the sums of values are in units of.
float largest, total;
uint unit;

uvec2 halves_of(vec4 v) { return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)); }

// As in attention_tile.comp.
void fetch(bool keys, uint at) {
  [[unroll]] for (uint i = 0; i < kStaged; ++i) {
    uint element = lane + i * WIDTH, key = at + element / kTileQuads, quad = element % kTileQuads;
    staged[i] = uvec2(0);
    staged_scales[i] = 0.0;
    if (element < KEYS * kTileQuads && key >= first_key && key < end_key && quad < kDimQuads) {
      Block block = block_at(keys, page_of(table, key), push.layer, kv_head);
      uint slot = key % PAGE_TOKENS;
      staged[i] = halves_of(kv_elements(block, slot, 4 * quad));
      if (quad == 0) staged_scales[i] = slot_scale(block, slot);
    }
  }
}
bool is_infinite(uvec2 halves) {
  uvec4 exponents = uvec4(halves, halves >> 16) & 0x7c00u;
  return any(equal(exponents, uvec4(0x7c00u)));
}
void put_tile(bool keys) {
  [[unroll]] for (uint i = 0; i < kStaged; ++i) {
    uint element = lane + i * WIDTH, key = element / kTileQuads, quad = element % kTileQuads;
    if (element >= KEYS * kTileQuads) continue;
    // Weights of zero would make it not a number for rows that do not see the key.
    bool leaves_out = !keys && is_infinite(staged[i]);
    uint to = key * kTilePitch + 2 * quad;
    tile[to] = leaves_out ? 0 : staged[i].x;
    tile[to + 1] = leaves_out ? 0 : staged[i].y;
    if (leaves_out) are_infinite[key] = 1;
    if (quad != 0) continue;
    if (keys) {
      key_scales[key] = staged_scales[i];
      are_infinite[key] = 0;
    } else {
      value_scales[key] = staged_scales[i];
    }
  }
}

float power_of_two(uint exponent) { return uintBitsToFloat(exponent << 23); }
uint exponent_of(float size) {
  return clamp(floatBitsToUint(size) >> 23, kLeastExponent, kMostExponent);
}

// Each part's two values, and the larger ones of all parts of the pair.
vec2 largest_of_parts(uint pair, uint part, vec2 found) {
  if (kParts == 1) return found;
  found_by[pair * kParts + part] = found;
  subgroupBarrier();
  for (uint i = 0; i < kParts; ++i) found = max(found, found_by[pair * kParts + i]);
  subgroupBarrier();
  return found;
}

// Scores of this invocation's part of a pair to weights, in the same words, and behind them, as
// often as a matrix has columns, what the pair's sums so far are multiplied by. query_factor: what
// the scores of codes are multiplied by.
void weigh(uint at, uint pair, uint part, float query_factor) {
  uint first = firsts[pair], end = ends[pair], strip = pair * kStripPitch;
  float found[2 * kWordsPerPart];
  vec2 most = vec2(largest, 0.0);
  [[unroll]] for (uint i = 0; i < 2 * kWordsPerPart; ++i) {
    uint in_tile = 2 * (part + i / 2 * kParts) + i % 2, key = at + in_tile;
    found[i] = ARN_NONE;
    if (key < first || key >= end) continue;
    float score = uintBitsToFloat(strips[strip + in_tile]) * query_factor * key_scales[in_tile];
    if (HAS_BIAS == 1) score += bias_of(position_of(row_of(pair)), key, head_of(pair));
    found[i] = softcapped(score, push.softcap);
    most = max(most, vec2(found[i], value_scales[in_tile]));
  }
  most = largest_of_parts(pair, part, most);
  uint unit_before = unit;
  unit = max(unit, exponent_of(most.y));
  float shrink = largest == ARN_NONE ? 0.0 : exp_f32(largest - most.x), sum = 0.0;
  float per_unit = power_of_two(254 - unit);
  largest = most.x;
  [[unroll]] for (uint i = 0; i < 2 * kWordsPerPart; ++i) {
    uint in_tile = 2 * (part + i / 2 * kParts) + i % 2, key = at + in_tile;
    bool is_seen = key >= first && key < end;
    float weight = is_seen ? exp_f32(found[i] - largest) : 0.0;
    sum += weight;
    // A key that is not seen may have any scale.
    found[i] = is_seen ? weight * (value_scales[in_tile] * per_unit) : 0.0;
    if (is_seen && are_infinite[in_tile] == 1) found[i] = uintBitsToFloat(0x7fc00000u);
  }
  total = total * shrink + sum;
  shrink *= power_of_two(127 - min(unit - unit_before, 127));
  subgroupBarrier();  // the parts of a pair have read their scores
  [[unroll]] for (uint i = 0; i < kWordsPerPart; ++i) {
    uint word = part + i * kParts;
    strips[strip + word] = packHalf2x16(vec2(found[2 * i], found[2 * i + 1]));
  }
  for (uint i = part; i < COOP_N; i += kParts) {
    strips[strip + KEYS / 2 + i] = floatBitsToUint(shrink);
  }
}

// The power of two of the largest element of a query.
uint query_exponent(uint pair, uint part) {
  uint from = query_at(pair);
  float peak = 0.0;
  for (uint quad = part; quad < kDimQuads; quad += kParts) {
    vec4 size = abs(query(from, quad));
    peak = max(peak, max(max(size.x, size.y), max(size.z, size.w)));
  }
  return exponent_of(largest_of_parts(pair, part, vec2(peak, 0.0)).x);
}

#define ARN_MATRIX(TYPE, ROWS, COLS, USE) coopmat<TYPE, gl_ScopeSubgroup, ROWS, COLS, USE>
#define ARN_F32 ARN_MATRIX(float, COOP_M, COOP_N, gl_MatrixUseAccumulator)

void main() {
  find_pairs();
  const uint invocation = gl_SubgroupInvocationID, first_pair = gl_SubgroupID * COOP_M;
  const uint pair = first_pair + invocation % COOP_M, part = invocation / COOP_M;
  const uint strip = first_pair * kStripPitch;

  bool has_sink = HAS_SINKS == 1 && has_pair(pair);
  largest = has_sink ? sinks[push.weights_at + head_of(pair)] : ARN_NONE;
  total = has_sink && part == 0 ? 1.0 : 0.0;
  unit = kLeastExponent;

  const uint exponent = query_exponent(pair, part);
  const float per_query_unit = power_of_two(254 - exponent);
  const float query_factor = power_of_two(exponent) * push.scale;
  ARN_MATRIX(float16_t, COOP_M, COOP_K, gl_MatrixUseA) queries[kDim / COOP_K];
  [[unroll]] for (uint k = 0; k < kDim / COOP_K; ++k) {
    for (uint i = part; i < COOP_K / 4; i += kParts) {
      uint quad = k * COOP_K / 4 + i;
      vec4 e = quad < kDimQuads ? query(query_at(pair), quad) : vec4(0.0);
      uvec2 halves = halves_of(e * per_query_unit);
      strips[pair * kStripPitch + 2 * i] = halves.x;
      strips[pair * kStripPitch + 2 * i + 1] = halves.y;
    }
    subgroupBarrier();
    coopMatLoad(queries[k], strips, strip, kStripPitch, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
  }
  ARN_F32 sums[kSums];
  [[unroll]] for (uint n = 0; n < kSums; ++n) sums[n] = ARN_F32(0.0);

  // Rows [row, next): of one sequence.
  for (uint row = first_row, next; row < end_row; row = next) {
    uvec2 whole;
    next = find_keys(row, whole);
    // Each turn attends to the tile at `at` and reads the next one; the first turn only reads.
    uint at = first_key / KEYS * KEYS - KEYS;
    for (bool has_tile = false; !has_tile || at < end_key; has_tile = true) {
      if (has_tile) {
        fetch(false, at);
        [[unroll]] for (uint n = 0; n < KEYS / COOP_N; ++n) {
          ARN_F32 scores = ARN_F32(0.0);
          [[unroll]] for (uint k = 0; k < kDim / COOP_K; ++k) {
            ARN_MATRIX(float16_t, COOP_K, COOP_N, gl_MatrixUseB) keys;
            coopMatLoad(keys, tile, n * COOP_N * kTilePitch + k * COOP_K / 2, kTilePitch,
                        gl_CooperativeMatrixLayoutColumnMajor);
            scores = coopMatMulAdd(queries[k], keys, scores);
          }
          coopMatStore(scores, strips, strip + n * COOP_N, kStripPitch,
                       gl_CooperativeMatrixLayoutRowMajor);
        }
        barrier();
        put_tile(false);
        barrier();
      }
      fetch(true, at + KEYS);
      if (has_tile) {
        weigh(at, pair, part, query_factor);
        subgroupBarrier();
        ARN_MATRIX(float16_t, COOP_M, COOP_K, gl_MatrixUseA) weights[KEYS / COOP_K];
        [[unroll]] for (uint k = 0; k < KEYS / COOP_K; ++k) {
          coopMatLoad(weights[k], strips, strip + k * COOP_K / 2, kStripPitch,
                      gl_CooperativeMatrixLayoutRowMajor);
        }
        ARN_F32 shrink;
        coopMatLoad(shrink, strips, strip + KEYS / 2, kStripPitch,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint n = 0; n < kSums; ++n) {
          sums[n] = sums[n] * shrink;
          [[unroll]] for (uint k = 0; k < KEYS / COOP_K; ++k) {
            ARN_MATRIX(float16_t, COOP_K, COOP_N, gl_MatrixUseB) values;
            coopMatLoad(values, tile, k * COOP_K * kTilePitch + n * COOP_N / 2, kTilePitch,
                        gl_CooperativeMatrixLayoutRowMajor);
            sums[n] = coopMatMulAdd(weights[k], values, sums[n]);
          }
        }
        barrier();
      }
      put_tile(true);
      barrier();
      at += KEYS;
    }
  }

  found_by[pair * kParts + part] = vec2(total, 0.0);
  subgroupBarrier();
  total = 0.0;
  for (uint i = 0; i < kParts; ++i) total += found_by[pair * kParts + i].x;
  const uint to = out_at(pair);
  [[unroll]] for (uint n = 0; n < kSums; ++n) {
    coopMatStore(sums[n], strips, strip, kStripPitch, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    for (uint i = part; i < COOP_N; i += kParts) {
      float sum = uintBitsToFloat(strips[pair * kStripPitch + i]) * power_of_two(unit);
      uint channel = n * COOP_N + i;
      if (has_pair(pair) && channel < HEAD_DIM) y[to + channel] = sum / total;
    }
    subgroupBarrier();
  }
}
