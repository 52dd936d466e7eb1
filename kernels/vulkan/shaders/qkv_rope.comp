#version 450
#extension GL_GOOGLE_include_directive : require
// kQkvRope and kStoreKv: a workgroup normalises and rotates one head of one row in place, and
// writes it to its page if it is a key or value head. Those of an encoder's rows have no pages.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { QkvRopePush push; };
#include "kv.glsl"
#include "kv_store.glsl"

layout(constant_id = kQkvHeadsId) const uint N_HEADS = 1;
layout(constant_id = kQkvKvHeadsId) const uint N_KV_HEADS = 1;
layout(constant_id = kQkvRotaryDimId) const uint ROTARY_DIM = 0;
layout(constant_id = kQkvHasQNormId) const uint HAS_Q_NORM = 0;
layout(constant_id = kQkvHasKNormId) const uint HAS_K_NORM = 0;
layout(constant_id = kQkvStoresId) const uint STORES = 0;
layout(constant_id = kQkvNormFollowsId) const uint NORM_FOLLOWS = 0;
layout(constant_id = kQkvHasVNormId) const uint HAS_V_NORM = 0;

layout(set = 0, binding = 1) readonly buffer VNorm { float v_norm[]; };
layout(set = 0, binding = 2) buffer Qkv { float qkv[]; };
layout(set = 0, binding = 3) readonly buffer QNorm { float q_norm[]; };
layout(set = 0, binding = 4) readonly buffer KNorm { float k_norm[]; };
layout(set = 0, binding = 5) readonly buffer Angles { float angles[]; };

// Normalises the head, if it has a norm. square: this invocation's part of the sum of squares.
void normalise(float square, bool is_query, bool is_value, uint lane) {
  float inverse = 1.0 / sqrt(reduce_add(square) / float(HEAD_DIM) + push.epsilon);
  if (is_query ? HAS_Q_NORM == 1 : is_value ? HAS_V_NORM == 1 : HAS_K_NORM == 1) {
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
      float weight = is_query   ? q_norm[push.weights_at + i]
                     : is_value ? v_norm[push.in_at + i]
                                : k_norm[push.rows_at + i];
      head_row[i] = head_row[i] * inverse * weight;
    }
  }
}

void main() {
  uint head = gl_WorkGroupID.x, row = gl_WorkGroupID.y, lane = gl_LocalInvocationIndex;
  uint at = push.out_at + row * push.stride + head * HEAD_DIM;
  uint in_run = row + ARN_FIRST_ROW, position = row_position(in_run);
  bool is_query = head < N_HEADS, is_value = head >= N_HEADS + N_KV_HEADS;
  float square = 0.0;
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) {
    float x = qkv[at + i];
    if (push.clip != 0.0) x = clamp(x, -push.clip, push.clip);
    head_row[i] = x;
    square += x * x;
  }
  const bool has_norm = HAS_Q_NORM == 1 || HAS_K_NORM == 1 || HAS_V_NORM == 1;
  if (has_norm && NORM_FOLLOWS == 0) normalise(square, is_query, is_value, lane);
  barrier();
  if (ROTARY_DIM != 0 && !is_value) {
    const uint half_dim = ROTARY_DIM / 2;
    uint from = push.extra_at + row * ROTARY_DIM;
    for (uint i = lane; i < half_dim; i += WIDTH) {
      float c = angles[from + i], s = angles[from + half_dim + i];
      float a = head_row[i], b = head_row[half_dim + i];
      head_row[i] = a * c - b * s;
      head_row[half_dim + i] = b * c + a * s;
    }
  }
  barrier();
  if (has_norm && NORM_FOLLOWS == 1) {
    square = 0.0;
    for (uint i = lane; i < HEAD_DIM; i += WIDTH) square += head_row[i] * head_row[i];
    normalise(square, is_query, is_value, lane);
    barrier();
  }
  float factor = 1.0;
  if (push.temperature != 0.0 && is_query) {
    uint steps = (position + push.temperature_shift) / push.temperature_step;
    factor += push.temperature * log(1.0 + float(steps));
  }
  for (uint i = lane; i < HEAD_DIM; i += WIDTH) qkv[at + i] = head_row[i] * factor;
  // Uniform across the workgroup.
  if (STORES == 1 && !is_query) {
    uint kv_head = (head - N_HEADS) % N_KV_HEADS;
    uint table = table_at(row_sequence(in_run), push.group);
    Block block = block_at(!is_value, page_of(table, position), push.layer, kv_head);
    store_row(block, position % PAGE_TOKENS);
  }
}
