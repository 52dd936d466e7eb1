// Attention of query heads of one row that share a key and value head: attention.comp, and what
// ends a matmul of queries, keys and values (gemv_rows.glsl). Keys are processed WIDTH at a time with
// an online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): each
// invocation computes the score of one key, then all sum the values, four channels each, in groups
// that take every n-th key.
//
// Include after kv.glsl, with y declared: the outputs. Define ARN_ATTENDS, 0 if a specialisation does
// not call these functions; ARN_SCORE_FACTOR; ARN_POOL_LAYER; and with rows of kSelfAttention, or a
// bias, ARN_HAS_SELF.
//
// Invocations that share a key, 2^n; PER_LANE is ceil(ceil(HEAD_DIM / 4) / N_PARTS).
layout(constant_id = kAttendPartsId) const uint N_PARTS = 16;
layout(constant_id = kAttendPerLaneId) const uint PER_LANE = 1;
layout(constant_id = kAttendHeadsId) const uint GROUP_HEADS = 1;

const uint kGroups = WIDTH / N_PARTS;
const uint kAttendWidth = ARN_ATTENDS == 1 ? WIDTH : 1;
shared vec4 query[ARN_ATTENDS == 1 ? GROUP_HEADS * kDimQuads : 1];
shared float weights[GROUP_HEADS * kAttendWidth];
shared uint v_values[kAttendWidth], v_scales[kAttendWidth], v_bits[kAttendWidth];
shared uint v_slots[kAttendWidth];
shared vec4 parts[kAttendWidth];

// Running state: maximum score, sum of e^(score - maximum), and the sums of values with these
// weights; one of each per head.
float largest[GROUP_HEADS], total[GROUP_HEADS];
vec4 sums[GROUP_HEADS * PER_LANE];

// Task of the workgroup: heads from first_head on.
uint first_head, row, lane, kv_head, table, position;

// Adds the products of quad i of the queries and of a key.
void add_dots(uint i, vec4 k, inout float dots[GROUP_HEADS]) {
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) dots[h] += dot(query[h * kDimQuads + i], k);
}

// Attends to keys [first, end), with `query` written before a barrier.
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
#ifdef ARN_HAS_SELF
      if (IS_SELF == 1) {
        uint k_at = push.in_at + key * push.in_stride + (N_HEADS + kv_head) * HEAD_DIM;
        for (uint i = 0; i < kDimQuads; ++i) {
          add_dots(i, row_elements(k_at, 4 * i), dots);
        }
        v_values[lane] = k_at + N_KV_HEADS * HEAD_DIM;
      } else
#endif
      {
        uint page = page_of(table, key), slot = key % PAGE_TOKENS;
        Block keys = block_at(true, page, ARN_POOL_LAYER, kv_head);
        for (uint i = 0; i < kDimQuads; ++i) {
          add_dots(i, kv_elements(keys, slot, 4 * i), dots);
        }
        k_scale = slot_scale(keys, slot);
        Block v = block_at(false, page, ARN_POOL_LAYER, kv_head);
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
        score = dots[h] * k_scale * ARN_SCORE_FACTOR;
#ifdef ARN_HAS_SELF
        if (HAS_BIAS == 1) score += bias_of(position, key, first_head + h);
#endif
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
#ifdef ARN_HAS_SELF
          if (IS_SELF == 1) {
            v = row_elements(v_values[j], channel);
          } else
#endif
          {
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

// Writes the output of a head, from element `to` of y on.
void put_out(uint h, uint to) {
  uint my_part = lane % N_PARTS, my_group = lane / N_PARTS;
  for (uint i = 0; i < PER_LANE; ++i) {
    parts[lane] = sums[h * PER_LANE + i];
    barrier();
    for (uint other = kGroups / 2; other > 0; other /= 2) {
      if (my_group < other) parts[lane] += parts[lane + other * N_PARTS];
      barrier();
    }
    uint channel = 4 * (my_part + i * N_PARTS);
    vec4 out_quad = parts[lane] / total[h];
    for (uint j = 0; j < 4; ++j) {
      if (my_group == 0 && channel + j < HEAD_DIM) y[to + channel + j] = out_quad[j];
    }
    barrier();
  }
}
