#version 450
#extension GL_GOOGLE_include_directive : require
// kQkvRope and kStoreKv: a workgroup normalises and rotates one head of one row in place, and
// writes it to its page if it is a key or value head. Those of an encoder's rows have no pages.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { QkvRopePush push; };
#include "kv_pages.glsl"
#include "kv_store.glsl"

layout(set = 0, binding = 1) readonly buffer VNorm { float v_norm[]; };
layout(set = 0, binding = 2) buffer Qkv { float qkv[]; };
layout(set = 0, binding = 3) readonly buffer QNorm { float q_norm[]; };
layout(set = 0, binding = 4) readonly buffer KNorm { float k_norm[]; };
layout(set = 0, binding = 5) readonly buffer Angles { float angles[]; };
#define ARN_HEAD_ELEMENT(I) qkv[I]
#define ARN_ANGLE(I) angles[push.extra_at + (I)]
#define ARN_Q_NORM(I) q_norm[push.weights_at + (I)]
#define ARN_K_NORM(I) k_norm[push.rows_at + (I)]
#define ARN_V_NORM(I) v_norm[push.in_at + (I)]
#define ARN_ACTIVE_POOL push.active_pool
#define ARN_POOL_LAYER push.layer
#define ARN_POOL_GROUP push.group
#include "rope_head.glsl"

void main() {
  uint head = gl_WorkGroupID.x, row = gl_WorkGroupID.y, in_run = row + ARN_FIRST_ROW;
  uint at = push.out_at + row * push.stride + head * HEAD_DIM;
  float factor = 1.0;
  if (push.temperature != 0.0) {
    uint steps = (row_position(in_run) + push.temperature_shift) / push.temperature_step;
    factor += push.temperature * log(1.0 + float(steps));
  }
  finish_head(head, at, row * ROTARY_DIM, push.clip, factor, in_run);
}
