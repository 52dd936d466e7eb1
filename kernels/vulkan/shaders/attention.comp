#version 450
#extension GL_GOOGLE_include_directive : require
// kAttention and kSelfAttention. A workgroup processes one query head of one row, or GROUP_HEADS of
// those that share a key and value head, for which it reads keys and values once: all positions
// that the row attends to, or one segment of SEGMENT positions, aligned to SEGMENT. In the latter
// case the grid's z is the number of segments, and the last workgroup of a row and its heads to end
// merges them, or, without MERGES, a second dispatch with IS_MERGE. Keys of a segment are processed
// WIDTH at a time with an online softmax (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018): each invocation computes the score of one key, then all sum the values, four
// channels each, in groups that take every n-th key. Segments are always merged in order, so
// results are bit-identical.
#define ARN_ENDS
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { AttentionPush push; };
#include "kv.glsl"
#include "attention.glsl"

// Invocations that share a key, 2^n; PER_LANE is ceil(ceil(HEAD_DIM / 4) / N_PARTS).
layout(constant_id = kAttentionPartsId) const uint N_PARTS = 16;
layout(constant_id = kAttentionPerLaneId) const uint PER_LANE = 1;
layout(constant_id = kAttentionSegmentId) const uint SEGMENT = 256;
layout(constant_id = kAttentionIsMergeId) const uint IS_MERGE = 0;
layout(constant_id = kAttentionMergesId) const uint MERGES = 0;
layout(constant_id = kAttentionGroupHeadsId) const uint GROUP_HEADS = 1;
// The last workgroup of a row to end quantises it for the matmul that follows.
layout(constant_id = kAttentionQuantizesId) const uint QUANTIZES = 0;

// Per row, head and segment: PER_LANE sums per invocation, then (largest, total, 0, 0).
layout(set = 0, binding = 5) coherent buffer Partials { vec4 partials[]; };

#include "arrivals.glsl"
#define ARN_QUANTIZED_BINDING 4
#define ARN_QUANTIZED_AT push.rows_at
#define ARN_QUANTIZED_VALUES_AT push.values_at
#define ARN_QUANTIZED_WORDS push.row_words
#include "quantize.glsl"

const uint kGroups = WIDTH / N_PARTS;
shared vec4 query[GROUP_HEADS * kDimQuads];
shared float weights[GROUP_HEADS * WIDTH];
shared uint v_values[WIDTH], v_scales[WIDTH], v_bits[WIDTH], v_slots[WIDTH];
shared vec4 parts[WIDTH];

// Running state of a segment, and merged state of the segments so far: maximum score, sum of
// e^(score - maximum), and the sums of values with these weights; one of each per head.
float largest[GROUP_HEADS], total[GROUP_HEADS];
float merged_largest[GROUP_HEADS], merged_total[GROUP_HEADS];
vec4 sums[GROUP_HEADS * PER_LANE], merged[GROUP_HEADS * PER_LANE];

// Task of the workgroup: heads from first_head on.
uint first_head, row, lane, kv_head, table, position;

// Adds the products of quad i of the queries and of a key.
void add_dots(uint i, vec4 k, inout float dots[GROUP_HEADS]) {
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) dots[h] += dot(query[h * kDimQuads + i], k);
}

void gather(uint first, uint end) {
  uint my_part = lane % N_PARTS, my_group = lane / N_PARTS;
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    largest[h] = ARN_NONE;
    total[h] = 0.0;
  }
  for (uint i = 0; i < GROUP_HEADS * PER_LANE; ++i) sums[i] = vec4(0.0);
  for (uint tile = first; tile < end; tile += WIDTH) {
    uint key = tile + lane;
    float dots[GROUP_HEADS], shrinks[GROUP_HEADS], k_scale = 1.0, v_scale = 1.0;
    [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) dots[h] = 0.0;
    if (key < end) {
      if (IS_SELF == 1) {
        uint k_at = push.in_at + key * push.in_stride + (N_HEADS + kv_head) * HEAD_DIM;
        for (uint i = 0; i < kDimQuads; ++i) {
          add_dots(i, row_elements(k_at, 4 * i), dots);
        }
        v_values[lane] = k_at + N_KV_HEADS * HEAD_DIM;
      } else {
        uint page = page_of(table, key), slot = key % PAGE_TOKENS;
        Block keys = block_at(true, page, push.layer, kv_head);
        for (uint i = 0; i < kDimQuads; ++i) {
          add_dots(i, kv_elements(keys, slot, 4 * i), dots);
        }
        k_scale = slot_scale(keys, slot);
        Block v = block_at(false, page, push.layer, kv_head);
        v_values[lane] = v.values;
        v_scales[lane] = v.scales;
        v_bits[lane] = v.bits;
        v_slots[lane] = slot;
        v_scale = slot_scale(v, slot);
      }
    }
    [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
      float score = ARN_NONE;
      if (key < end) {
        score = dots[h] * k_scale * push.scale;
        if (HAS_BIAS == 1) score += bias_of(position, key, first_head + h);
        score = softcapped(score, push.softcap);
      }
      float before = largest[h];
      largest[h] = max(before, reduce_max(score));
      float weight = key < end ? exp_f32(score - largest[h]) : 0.0;
      shrinks[h] = before == ARN_NONE ? 0.0 : exp_f32(before - largest[h]);
      total[h] = total[h] * shrinks[h] + reduce_add(weight);
      weights[h * WIDTH + lane] = weight * v_scale;
    }
    barrier();
    uint n = min(WIDTH, end - tile);
    for (uint i = 0; i < PER_LANE; ++i) {
      uint channel = 4 * (my_part + i * N_PARTS);
      vec4 of_head[GROUP_HEADS];
      [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
        of_head[h] = sums[h * PER_LANE + i] * shrinks[h];
      }
      if (channel < HEAD_DIM) {
        for (uint j = my_group; j < n; j += kGroups) {
          vec4 v;
          if (IS_SELF == 1) {
            v = row_elements(v_values[j], channel);
          } else {
            v = kv_elements(Block(v_values[j], v_scales[j], v_bits[j], false), v_slots[j], channel);
          }
          [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
            of_head[h] += weights[h * WIDTH + j] * v;
          }
        }
      }
      [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) sums[h * PER_LANE + i] = of_head[h];
    }
    barrier();
  }
}

const uint kRecord = PER_LANE * WIDTH + 1;
uint record_at(uint h, uint segment) {
  uint of_row = row * N_HEADS + first_head + h;
  return push.extra_at / 4 + (of_row * push.most_segments + segment) * kRecord;
}

void store_partials(uint segment) {
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    uint at = record_at(h, segment);
    for (uint i = 0; i < PER_LANE; ++i) {
      partials[at + i * WIDTH + lane] = sums[h * PER_LANE + i];
    }
    if (lane == 0) partials[at + PER_LANE * WIDTH] = vec4(largest[h], total[h], 0.0, 0.0);
  }
}

void load_partials(uint segment) {
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    uint at = record_at(h, segment);
    for (uint i = 0; i < PER_LANE; ++i) {
      sums[h * PER_LANE + i] = partials[at + i * WIDTH + lane];
    }
    vec4 rest = partials[at + PER_LANE * WIDTH];
    largest[h] = rest.x;
    total[h] = rest.y;
  }
}

void merge() {
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    float before = merged_largest[h];
    merged_largest[h] = max(before, largest[h]);
    float old = before == ARN_NONE ? 0.0 : exp_f32(before - merged_largest[h]);
    float fresh = exp_f32(largest[h] - merged_largest[h]);
    // precise: both pipelines (direct and IS_MERGE) must round identically, without contraction.
    precise float both = merged_total[h] * old + total[h] * fresh;
    merged_total[h] = both;
    for (uint i = h * PER_LANE; i < (h + 1) * PER_LANE; ++i) {
      precise vec4 sum = merged[i] * old + sums[i] * fresh;
      merged[i] = sum;
    }
  }
}

void put_out(uint h) {
  uint my_part = lane % N_PARTS, my_group = lane / N_PARTS;
  uint to = push.out_at + (row * N_HEADS + first_head + h) * HEAD_DIM;
  for (uint i = 0; i < PER_LANE; ++i) {
    parts[lane] = merged[h * PER_LANE + i];
    barrier();
    for (uint other = kGroups / 2; other > 0; other /= 2) {
      if (my_group < other) parts[lane] += parts[lane + other * N_PARTS];
      barrier();
    }
    uint channel = 4 * (my_part + i * N_PARTS);
    vec4 out_quad = parts[lane] / merged_total[h];
    for (uint j = 0; j < 4; ++j) {
      if (my_group == 0 && channel + j < HEAD_DIM) y[to + channel + j] = out_quad[j];
    }
    barrier();
  }
}

vec4 out_quad(uint at) { return vec4(y[at], y[at + 1], y[at + 2], y[at + 3]); }

void quantize() {
  const uint n = N_HEADS * HEAD_DIM, from = push.out_at + row * n;
  float low = 0.0, high = 0.0;
  for (uint q = lane; q < n / 4; q += WIDTH) {
    vec4 value = out_quad(from + 4 * q);
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  ARN_QUANTIZE_ROW(row, n, low, high, out_quad(from + c))
}

void main() {
  first_head = gl_WorkGroupID.x * GROUP_HEADS;
  row = gl_WorkGroupID.y;
  lane = gl_LocalInvocationIndex;
  kv_head = first_head / (N_HEADS / N_KV_HEADS);
  table = IS_SELF == 1 ? 0 : table_at(row_sequence(row), push.group);
  position = position_of(row);
  uvec2 seen = seen_by(row, table);
  uint first = seen.x, end = seen.y;
  uint before = first / SEGMENT, n_segments = (end + SEGMENT - 1) / SEGMENT - before;
  // If the row is not split, its first workgroup processes everything.
  bool is_shared = n_segments > 1 && gl_NumWorkGroups.z > 1;
  uint my_segment = gl_WorkGroupID.z;
  if (IS_MERGE == 1 ? n_segments <= 1 : my_segment >= (is_shared ? n_segments : 1)) return;
  if (IS_MERGE == 0) {
    uint from = push.in_at + row * push.in_stride + first_head * HEAD_DIM;
    for (uint i = lane; i < GROUP_HEADS * kDimQuads; i += WIDTH) {
      query[i] = row_elements(from + i / kDimQuads * HEAD_DIM, 4 * (i % kDimQuads));
    }
    barrier();
  }
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    merged_largest[h] = HAS_SINKS == 1 ? sinks[push.weights_at + first_head + h] : ARN_NONE;
    merged_total[h] = HAS_SINKS == 1 ? 1.0 : 0.0;
  }
  for (uint i = 0; i < GROUP_HEADS * PER_LANE; ++i) merged[i] = vec4(0.0);
  bool is_merging = IS_MERGE == 1;
  for (uint i = is_shared ? my_segment : 0; i < n_segments; ++i) {
    if (is_merging) {
      load_partials(i);
    } else {
      uint at = (before + i) * SEGMENT;
      gather(max(first, at), min(end, at + SEGMENT));
    }
    if (is_merging || !is_shared) {
      merge();
      continue;
    }
    store_partials(i);
    uint counter = kFirstHeadArrival + row * N_HEADS + first_head;
    if (MERGES == 0 || !is_last_of(n_segments, counter)) return;
    is_merging = true;
    i = uint(-1);  // from the first segment on
  }
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) put_out(h);
  if (QUANTIZES == 1 && is_last_of(N_HEADS / GROUP_HEADS, row)) quantize();
}
