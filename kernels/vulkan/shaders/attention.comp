#version 450
#extension GL_GOOGLE_include_directive : require
// kAttention and kSelfAttention. A workgroup processes one query head of one row, or GROUP_HEADS of
// those that share a key and value head, for which it reads keys and values once: all positions
// that the row attends to, or one segment of SEGMENT positions, aligned to SEGMENT. In the latter
// case the grid's z is the number of segments, and the last workgroup of a row and its heads to end
// merges them, or, without MERGES, a second dispatch with IS_MERGE. Segments are always merged in
// order, so results are bit-identical.
#define ARN_ENDS
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { AttentionPush push; };
#include "kv.glsl"
#include "attention.glsl"

layout(constant_id = kAttentionSegmentId) const uint SEGMENT = 256;
layout(constant_id = kAttentionIsMergeId) const uint IS_MERGE = 0;
layout(constant_id = kAttentionMergesId) const uint MERGES = 0;
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

#define ARN_ATTENDS 1
#define ARN_HAS_SELF
#define ARN_SCORE_FACTOR push.scale
#define ARN_POOL_LAYER push.layer
#include "attention_rows.glsl"

// State of the segments so far.
float merged_largest[GROUP_HEADS], merged_total[GROUP_HEADS];
vec4 merged[GROUP_HEADS * PER_LANE];

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
  for (uint i = 0; i < GROUP_HEADS * PER_LANE; ++i) sums[i] = merged[i];
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) {
    total[h] = merged_total[h];
    put_out(h, push.out_at + (row * N_HEADS + first_head + h) * HEAD_DIM);
  }
  if (QUANTIZES == 1 && is_last_of(N_HEADS / GROUP_HEADS, row)) quantize();
}
