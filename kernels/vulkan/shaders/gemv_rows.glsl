// Common to gemv_int.comp and gemv_float.comp: who computes which outputs, and what follows when all
// outputs of a row, or of a head, are there. Define ARN_ENDS before common.glsl.
layout(constant_id = kMatmulRowsId) const uint N_ROW = 1;
layout(constant_id = kMatmulOutsId) const uint N_OUT = 4;
// Parts of the workgroup with N_OUT outputs of their own: whole subgroups, if there are several.
layout(constant_id = kMatmulTeamsId) const uint TEAMS = 1;
// 1: kQkvRope follows. A workgroup's outputs are in one head.
layout(constant_id = kMatmulRotatesId) const uint ROTATES = 0;

#include "arrivals.glsl"
#define ARN_ACTIVE_POOL                                                                     \
  KvPool(push.ARN_ROPE_POOL_AT, push.ARN_ROPE_PAGE_STRIDE, 0u, push.ARN_ROPE_V_AT,          \
         push.ARN_ROPE_K_SCALES_AT, push.ARN_ROPE_V_SCALES_AT)
#define ARN_POOL_LAYER 0
#define ARN_POOL_GROUP push.ARN_ROPE_GROUP
#ifdef ARN_INTEGERS
// 1: kAttention follows kQkvRope, for the only row, whose pages are in one window.
layout(constant_id = kMatmulAttendsId) const uint ATTENDS = 0;
#define ARN_READS_ACTIVE
#include "kv.glsl"
#define ARN_ATTENDS ATTENDS
#define ARN_SCORE_FACTOR push.factor
#include "attention_rows.glsl"
#else
#include "kv_pages.glsl"
#endif
#include "kv_store.glsl"
// Norms are in bindings of windows onto the pages, which are not there with them, and are read
// through these: synchronisation validation would take a variable of their own, which is only read,
// for a hazard between joined dispatches that bind one buffer to all.
vec4 norm_weight(uint quad) {
  const uint at = push.norm_at + 4 * quad;
  return uintBitsToFloat(uvec4(kv1[at], kv1[at + 1], kv1[at + 2], kv1[at + 3]));
}
vec4 norm_bias(uint quad) {
  const uint at = push.norm_bias_at + 4 * quad;
  return uintBitsToFloat(uvec4(kv2[at], kv2[at + 1], kv2[at + 2], kv2[at + 3]));
}
#include "norm_row.glsl"
// The outputs of kQkvRope.
#define ARN_HEAD_ELEMENT(I) y[I]
// The angles are in the binding of inputs that these weights do not have.
#ifdef ARN_INTEGERS
#define ARN_ANGLE(I) x[push.in_at + (I)]
#else
#define ARN_ANGLE(I) uintBitsToFloat(quantized[push.extra_at + (I)])
#endif
#define ARN_Q_NORM(I) uintBitsToFloat(kv1[push.ARN_ROPE_Q_NORM_AT + (I)])
#define ARN_K_NORM(I) uintBitsToFloat(kv2[push.ARN_ROPE_K_NORM_AT + (I)])
#define ARN_V_NORM(I) uintBitsToFloat(kv3[push.ARN_ROPE_V_NORM_AT + (I)])
#include "rope_head.glsl"

const uint LANES = WIDTH / TEAMS;
// Outputs that a team writes. With gate/up pairs, the other half of N_OUT are the ups.
const uint N_NEXT = ACTIVATES == kActivatesPairs ? N_OUT / 2 : N_OUT;
#ifdef ARN_SUBGROUP
uint team_lane() { return TEAMS == 1 ? gl_LocalInvocationIndex : gl_SubgroupInvocationID; }
uint first_out() {
  return (gl_WorkGroupID.x * TEAMS + (TEAMS == 1 ? 0 : gl_SubgroupID)) * N_NEXT;
}
#else
uint team_lane() { return gl_LocalInvocationIndex; }
uint first_out() { return gl_WorkGroupID.x * N_NEXT; }
#endif
bool has_out(uint first, uint n) { return first + n % N_NEXT < n_written(); }
// The n-th output of a team whose first one is `first`; after the last one, that.
uint known_out(uint first, uint n) {
  return min(first + n % N_NEXT, n_written() - 1) + n / N_NEXT * n_written();
}

// Adds each of the N_ROW * N_OUT values over the invocations of a team, all between the same
// barriers. The first invocation has the results.
const uint SUMS = N_ROW * N_OUT;
const bool kIsSubgroup = ONE_SUBGROUP == 1 || TEAMS > 1;
shared uint team_sums[kIsSubgroup ? 1 : SUMS * WIDTH];
#ifdef ARN_SUBGROUP
#define ARN_TEAM_ADD(TYPE, TO_WORD, FROM_WORD)                                                   \
  void team_add(inout TYPE x[SUMS]) {                                                            \
    [[unroll]] for (uint i = 0; i < SUMS; ++i) x[i] = subgroupAdd(x[i]);                         \
    if (!kIsSubgroup && gl_NumSubgroups > 1) {                                                   \
      [[unroll]] for (uint i = 0; i < SUMS; ++i) {                                               \
        if (subgroupElect()) team_sums[i * WIDTH + gl_SubgroupID] = TO_WORD(x[i]);               \
      }                                                                                          \
      barrier();                                                                                 \
      [[unroll]] for (uint i = 0; i < SUMS; ++i) {                                               \
        x[i] = FROM_WORD(team_sums[i * WIDTH]);                                                  \
        for (uint s = 1; s < gl_NumSubgroups; ++s) x[i] += FROM_WORD(team_sums[i * WIDTH + s]);  \
      }                                                                                          \
    }                                                                                            \
  }
#else
#define ARN_TEAM_ADD(TYPE, TO_WORD, FROM_WORD)                                                   \
  void team_add(inout TYPE x[SUMS]) {                                                            \
    const uint self = gl_LocalInvocationIndex;                                                   \
    [[unroll]] for (uint i = 0; i < SUMS; ++i) team_sums[i * WIDTH + self] = TO_WORD(x[i]);      \
    for (uint other = WIDTH / 2; other > 0; other /= 2) {                                        \
      barrier();                                                                                 \
      [[unroll]] for (uint i = 0; i < SUMS && self < other; ++i) {                               \
        const uint at = i * WIDTH + self;                                                        \
        x[i] = FROM_WORD(team_sums[at]) + FROM_WORD(team_sums[at + other]);                      \
        team_sums[at] = TO_WORD(x[i]);                                                           \
      }                                                                                          \
    }                                                                                            \
  }
#endif
ARN_TEAM_ADD(float, floatBitsToUint, uintBitsToFloat)
#ifdef ARN_INTEGERS
ARN_TEAM_ADD(int, uint, int)
#endif

// Writes a team's outputs, whose dot products its first invocation has.
void put_outputs(float sums[SUMS], uint first, uint first_row, uint rows) {
  [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
    [[unroll]] for (uint n = 0; n < N_NEXT; ++n) {
      uint row = first_row + m, i = m * N_OUT + n;
      if (team_lane() != 0 || row >= rows || !has_out(first, n)) continue;
      put_activated(row, first + n, sums[i], sums[(i + N_NEXT) % SUMS]);
    }
  }
}

#ifdef ARN_INTEGERS
// The last workgroup to end a head of those that share a key and value head does attention.comp for
// their queries, whose place the outputs take; the last of these quantises the row.
void attend(uint head) {
  // All invocations have written a part of the head.
  memoryBarrierBuffer();
  barrier();
  kv_head = head < N_HEADS ? head / GROUP_HEADS : (head - N_HEADS) % N_KV_HEADS;
  const uint counter = kFirstHeadArrival + N_HEADS + 2 * N_KV_HEADS + kv_head;
  if (!is_last_of(GROUP_HEADS + 2, counter)) return;
  lane = gl_LocalInvocationIndex;
  first_head = kv_head * GROUP_HEADS;
  table = table_at(row_sequence(0), ARN_POOL_GROUP);
  const uint heads_at = push.out_at + first_head * HEAD_DIM;
  for (uint i = lane; i < GROUP_HEADS * kDimQuads; i += WIDTH) {
    query[i] = out_quad(heads_at + 4 * i);
  }
  barrier();
  gather(run[table + kGroupFirstPage] * PAGE_TOKENS, row_position(0) + 1);
  [[unroll]] for (uint h = 0; h < GROUP_HEADS; ++h) put_out(h, heads_at + h * HEAD_DIM);
  memoryBarrierBuffer();
  barrier();
  if (is_last_of(N_KV_HEADS, 0)) quantise_row(0, N_HEADS * HEAD_DIM);
}
#endif

// The last workgroup to end a head's outputs does qkv_rope.comp for them.
void end_head(uint first, uint end) {
  const uint n_heads = N_HEADS + (STORES == 1 ? 2 * N_KV_HEADS : 0);
  const uint head = gl_WorkGroupID.x * TEAMS * N_OUT / max(HEAD_DIM, 1u);
  if (head >= n_heads) return;
  const uint counter = kFirstHeadArrival + gl_WorkGroupID.y * n_heads + head;
  if (!is_last_of(HEAD_DIM / (N_OUT * TEAMS), counter)) return;
  for (uint row = first; row < end; ++row) {
    finish_head(head, push.out_at + row * push.out_stride + head * HEAD_DIM, row * ROTARY_DIM, 0.0,
                1.0, row);
    barrier();  // before the next row's head takes its place
  }
#ifdef ARN_INTEGERS
  if (ATTENDS == 1) attend(head);
#endif
}

// Call when the workgroup has written its outputs.
void end_rows() {
  const uint first = gl_WorkGroupID.y * N_ROW, end = min(first + N_ROW, ARN_ROWS);
  if (ROTATES == 1) end_head(first, end);
  if ((NORMS == 0 && QUANTIZES == 0) || !is_last_of(gl_NumWorkGroups.x, gl_WorkGroupID.y)) return;
  for (uint row = first; row < end; ++row) {
    if (NORMS == 1) {
      normalise_row(row, push.out_stride);
    } else {
      quantise_row(row, push.out_stride);
    }
  }
}
