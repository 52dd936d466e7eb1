#version 450
#extension GL_GOOGLE_include_directive : require
// kAttention and kSelfAttention of many rows. A workgroup has TILE_ROWS rows and up to TILE_HEADS
// of the query heads that share a key and value head: at most PAIRS pairs of row and query head. It
// walks the keys that any of its rows sees KEYS at a time and decodes each key and value once, into
// shared memory: scores of all pairs, an online softmax (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018), then the sums of the values, which stay in registers (Dao,
// "FlashAttention-2", 2023). Rows of several sequences are processed one sequence after another.
// Tiles of keys begin at multiples of KEYS, and a key that a row does not see changes nothing, so
// that an output does not depend on the other rows of the tile.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { AttentionPush push; };
#include "kv.glsl"
#include "attention.glsl"
#include "attention_pairs.glsl"

// PAIRS is 4 * 2^n and divides WIDTH. KEYS is 2^n; KEYS * PAIRS >= 4 * WIDTH.

// 1: the queries of all pairs are in shared memory; 0: they are read again for each tile of keys.
layout(constant_id = kAttentionKeepsQueriesId) const uint KEEPS_QUERIES = 0;

// 1: of kSelfAttention, keys and values are not in the input: bindings 5 and 3 have them, of the
// grid's heads and of all rows.
layout(constant_id = kAttentionIsCopiedId) const uint IS_COPIED = 0;

layout(set = 0, binding = 3) readonly buffer Values { float values[]; };
layout(set = 0, binding = 3) readonly buffer ValueQuads { vec4 value_quads[]; };
layout(set = 0, binding = 5) readonly buffer Keys { float keys[]; };
layout(set = 0, binding = 5) readonly buffer KeyQuads { vec4 key_quads[]; };

// Pairs are processed in groups of four. Scores: an invocation has one group and kKeysPerLane keys.
const uint kPairGroups = PAIRS / 4;
const uint kKeysPerLane = KEYS * kPairGroups / WIDTH, kKeyLanes = KEYS / kKeysPerLane;
// Softmax: kParts invocations have a pair.
const uint kParts = WIDTH / PAIRS;
// Sums: an invocation has one group and every kQuadLanes-th quad of channels.
const uint kQuadLanes = WIDTH / kPairGroups;
const uint kQuadsPerLane = (kDimQuads + kQuadLanes - 1) / kQuadLanes;
// Quads of the keys or values of a tile that an invocation decodes.
const uint kStaged = (KEYS * kDimQuads + WIDTH - 1) / WIDTH;
// One quad of padding: neighbouring keys are in different banks.
const uint kTilePitch = kDimQuads + 1, kScorePitch = kPairGroups + 1;

shared vec4 tile[KEYS * kTilePitch];         // keys, then values
shared vec4 scores[KEYS * kScorePitch];      // of each key: the scores of all pairs, then weights
shared vec4 shrinks[kPairGroups];            // what the sums so far are multiplied by
shared vec4 queries[PAIRS * kDimQuads * KEEPS_QUERIES + 1];  // of each quad: those of all pairs

vec4 staged[kStaged];
vec4 sums[4 * kQuadsPerLane];
float largest, total;  // of this invocation's pair, and of its part of the keys

#define ARN_COPIED(START, ROWS, QUADS)                                        \
  {                                                                           \
    uint from = START + at;                                                   \
    if (IN_QUADS == 1) return QUADS[from / 4];                                \
    vec4 e = vec4(0.0);                                                       \
    for (uint j = 0; j < 4 && i + j < HEAD_DIM; ++j) e[j] = ROWS[from + j];   \
    return e;                                                                 \
  }
vec4 copied(bool of_keys, uint key, uint i) {
  uint n = gl_NumWorkGroups.x / kSplits;
  uint at = (key * n + kv_head - push.first_kv_head) * HEAD_DIM + i;
  if (of_keys) ARN_COPIED(push.extra_at, keys, key_quads)
  ARN_COPIED(push.weights_at, values, value_quads)
}

vec4 decoded(bool keys, uint key, uint i) {
  if (IS_COPIED == 1) return copied(keys, key, i);
  if (IS_SELF == 1) {
    uint head = N_HEADS + (keys ? 0 : N_KV_HEADS) + kv_head;
    uint from = push.in_at + key * push.in_stride + head * HEAD_DIM;
    return query(from, i / 4);
  }
  Block block = block_at(keys, page_of(table, key), push.layer, kv_head);
  uint slot = key % PAGE_TOKENS;
  return kv_elements(block, slot, i) * slot_scale(block, slot);
}

// Reads the keys, or the values, of the tile at `at` into registers: the reads go on while the
// previous tile is worked on.
void fetch(bool keys, uint at) {
  [[unroll]] for (uint i = 0; i < kStaged; ++i) {
    uint element = lane + i * WIDTH, key = at + element / kDimQuads;
    staged[i] = vec4(0.0);
    if (element < KEYS * kDimQuads && key >= first_key && key < end_key) {
      staged[i] = decoded(keys, key, 4 * (element % kDimQuads));
    }
  }
}
void put_tile() {
  [[unroll]] for (uint i = 0; i < kStaged; ++i) {
    uint element = lane + i * WIDTH;
    if (element < KEYS * kDimQuads) {
      tile[element / kDimQuads * kTilePitch + element % kDimQuads] = staged[i];
    }
  }
}

void find_scores(uint at) {
  uint key_lane = lane % kKeyLanes, group = lane / kKeyLanes;
  uint q_at[4];
  [[unroll]] for (uint j = 0; j < 4; ++j) q_at[j] = query_at(4 * group + j);
  vec4 found[kKeysPerLane];
  [[unroll]] for (uint k = 0; k < kKeysPerLane; ++k) found[k] = vec4(0.0);
  for (uint quad = 0; quad < kDimQuads; ++quad) {
    vec4 q[4];
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (KEEPS_QUERIES == 1) {
        q[j] = queries[quad * PAIRS + 4 * group + j];
      } else {
        q[j] = query(q_at[j], quad);
      }
    }
    [[unroll]] for (uint k = 0; k < kKeysPerLane; ++k) {
      vec4 key = tile[(key_lane + k * kKeyLanes) * kTilePitch + quad];
      found[k] += vec4(dot(q[0], key), dot(q[1], key), dot(q[2], key), dot(q[3], key));
    }
  }
  [[unroll]] for (uint k = 0; k < kKeysPerLane; ++k) {
    uint in_tile = key_lane + k * kKeyLanes, key = at + in_tile;
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      uint pair = 4 * group + j;
      bool is_seen = key >= firsts[pair] && key < ends[pair];
      float score = found[k][j] * push.scale;
      if (HAS_BIAS == 1 && is_seen) {
        score += bias_of(position_of(row_of(pair)), key, head_of(pair));
      }
      found[k][j] = is_seen ? softcapped(score, push.softcap) : ARN_NONE;
    }
    scores[in_tile * kScorePitch + group] = found[k];
  }
}

// Scores to weights.
void weigh(uint at) {
  uint pair = lane / kParts, part = lane % kParts, column = pair / 4;
  uint first = firsts[pair], end = ends[pair];
  float before = largest;
  for (uint k = 0; k < KEYS; ++k) {
    largest = max(largest, scores[k * kScorePitch + column][pair % 4]);
  }
  if (kParts > 1) barrier();  // the parts of a pair read the same scores
  float shrink = before == ARN_NONE ? 0.0 : exp_f32(before - largest), sum = 0.0;
  for (uint k = part; k < KEYS; k += kParts) {
    uint key = at + k, from = k * kScorePitch + column;
    float weight = key >= first && key < end ? exp_f32(scores[from][pair % 4] - largest) : 0.0;
    scores[from][pair % 4] = weight;
    sum += weight;
  }
  total = total * shrink + sum;
  if (part == 0) shrinks[column][pair % 4] = shrink;
}

// is_whole: every pair sees every key. Otherwise a value without weight may be infinite.
void add_values(const bool is_whole) {
  uint quad_lane = lane % kQuadLanes, group = lane / kQuadLanes;
  vec4 shrink = shrinks[group];
  [[unroll]] for (uint i = 0; i < 4 * kQuadsPerLane; ++i) sums[i] *= shrink[i % 4];
  for (uint k = 0; k < KEYS; ++k) {
    vec4 weight = scores[k * kScorePitch + group];
    [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
      // Past the last quad: sums that are not stored.
      vec4 v = tile[k * kTilePitch + min(quad_lane + i * kQuadLanes, kDimQuads - 1)];
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        vec4 sum = fma(vec4(weight[j]), v, sums[4 * i + j]);
        sums[4 * i + j] = is_whole || weight[j] != 0.0 ? sum : sums[4 * i + j];
      }
    }
  }
}

void put_out() {
  // Totals of the parts of each pair, where the scores were.
  scores[lane % kParts * kScorePitch + lane / kParts / 4][lane / kParts % 4] = total;
  barrier();
  uint quad_lane = lane % kQuadLanes, group = lane / kQuadLanes;
  vec4 totals = scores[group];
  for (uint part = 1; part < kParts; ++part) totals += scores[part * kScorePitch + group];
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    uint pair = 4 * group + j;
    uint to = out_at(pair);
    [[unroll]] for (uint i = 0; i < kQuadsPerLane; ++i) {
      uint channel = 4 * (quad_lane + i * kQuadLanes);
      vec4 out_quad = sums[4 * i + j] / totals[j];
      for (uint c = 0; c < 4; ++c) {
        if (has_pair(pair) && channel + c < HEAD_DIM) y[to + channel + c] = out_quad[c];
      }
    }
  }
}

void main() {
  find_pairs();

  uint my_pair = lane / kParts;
  bool has_sink = HAS_SINKS == 1 && has_pair(my_pair);
  largest = has_sink ? sinks[push.weights_at + head_of(my_pair)] : ARN_NONE;
  total = has_sink && lane % kParts == 0 ? 1.0 : 0.0;
  [[unroll]] for (uint i = 0; i < 4 * kQuadsPerLane; ++i) sums[i] = vec4(0.0);
  for (uint i = lane; KEEPS_QUERIES == 1 && i < PAIRS * kDimQuads; i += WIDTH) {
    uint pair = i / kDimQuads, quad = i % kDimQuads;
    queries[quad * PAIRS + pair] = query(query_at(pair), quad);
  }

  // Rows [row, next): of one sequence, or of one part.
  for (uint row = first_row, next; row < end_row; row = next) {
    uvec2 whole;
    next = find_keys(row, whole);
    const bool has_all_rows = row == first_row && next == end_row;
    // Each turn attends to the tile at `at` and reads the next one; the first turn only reads.
    uint at = first_key / KEYS * KEYS - KEYS;
    for (bool has_tile = false; !has_tile || at < end_key; has_tile = true) {
      if (has_tile) {
        fetch(false, at);
        find_scores(at);
        barrier();
        put_tile();
        weigh(at);
        barrier();
      }
      fetch(true, at + KEYS);
      if (has_tile) {
        if (has_all_rows && at >= whole.x && at + KEYS <= whole.y) {
          add_values(true);
        } else {
          add_values(false);
        }
        barrier();
      }
      put_tile();
      barrier();
      at += KEYS;
    }
  }
  put_out();
}
