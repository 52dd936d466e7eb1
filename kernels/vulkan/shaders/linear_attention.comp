#version 450
#extension GL_GOOGLE_include_directive : require
// kLinearAttention, as in kernels/reference/linear_attention.cc. A workgroup has kColumns columns
// of the states of a sequence's head, and processes the sequence's rows in order with the states in
// registers: an invocation has four columns of every PARTS-th key. Sums over the keys are those of
// an invocation's keys, in order, then of the parts, through shared memory. What the next row
// recalls (delta rule: S^T k) is summed in the pass of the row before, so that a row takes one
// barrier. Each sum is the same whatever else is in the run. Keys, queries, values and gates are
// read BLOCK rows at a time.
#include "common.glsl"
#include "math.glsl"
layout(push_constant) uniform Push { LinearAttentionPush push; };
#include "kv.glsl"

layout(constant_id = kLinearKeyDimId) const uint KEY_DIM = 1;
layout(constant_id = kLinearPartsId) const uint PARTS = 16;  // at least 4, and divides WIDTH
layout(constant_id = kLinearBlockId) const uint BLOCK = 1;   // divides WIDTH
layout(constant_id = kLinearPanelId) const uint PANEL = 32;  // columns; kColumns divides it
layout(constant_id = kLinearHasDeltaRuleId) const uint HAS_DELTA_RULE = 0;
layout(constant_id = kLinearHasSkipId) const uint HAS_SKIP = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) writeonly buffer Out { float y[]; };
layout(set = 0, binding = 3) readonly buffer Heads { float heads[]; };
layout(set = 0, binding = 4) readonly buffer Gates { float gates[]; };
#include "state.glsl"

const uint kQuads = WIDTH / PARTS, kColumns = 4 * kQuads;
const uint kKeys = (KEY_DIM + PARTS - 1) / PARTS;  // of an invocation
const uint kPitch = kKeys * PARTS;                 // padded with zeros
const uint kLengthLanes = WIDTH / BLOCK;           // invocations that have a row's length

shared float queries[BLOCK * kPitch];
shared float keys[(BLOCK + HAS_DELTA_RULE) * kPitch];  // with the row after the block's
shared float values[BLOCK * kColumns];
shared vec4 factors[BLOCK];      // decay; dt or beta; delta rule: those of q and k, else skip
shared vec2 squares[WIDTH];      // of q and k
shared vec4 outputs[2 * WIDTH];  // rows take turns with the halves
shared vec4 recalls[HAS_DELTA_RULE * 2 * WIDTH + 1];

uint lane, quad, part, head;
uint first_column, n_columns;  // of the head: this invocation's, and how many of four exist
uint end_row;                  // of the sequence
vec4 states[kKeys];

// Float of the step's states: columns from first_column on, of the key.
uint state_at(uint key) {
  uint panel = first_column / PANEL * PANEL;
  return (head * push.value_dim + panel) * KEY_DIM + key * min(PANEL, push.value_dim - panel) +
         first_column - panel;
}

void read_states(uint slot) {
  [[unroll]] for (uint i = 0; i < kKeys; ++i) {
    uint key = i * PARTS + part;
    states[i] = vec4(0.0);
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (key < KEY_DIM && j < n_columns) states[i][j] = state_before(slot, state_at(key) + j);
    }
  }
}

void write_states(uint slot) {
  [[unroll]] for (uint i = 0; i < kKeys; ++i) {
    uint key = i * PARTS + part;
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (key < KEY_DIM && j < n_columns) put_state(slot, state_at(key) + j, states[i][j]);
    }
  }
}

// Reads n rows into shared memory.
void read_rows(uint first_row, uint n) {
  uint all_keys = push.n_heads / push.heads_per_key * KEY_DIM;
  uint stride = 2 * all_keys + push.n_heads * push.value_dim;
  uint q_at = push.in_at + first_row * stride + head / push.heads_per_key * KEY_DIM;
  for (uint i = lane; i < n * kPitch; i += WIDTH) {
    uint t = i / kPitch, c = i % kPitch;
    float q = 0.0;
    if (c < KEY_DIM) q = x[q_at + t * stride + c];
    queries[i] = q;
  }
  for (uint i = lane; i < (n + HAS_DELTA_RULE) * kPitch; i += WIDTH) {
    uint t = i / kPitch, c = i % kPitch;
    float k = 0.0;
    if (c < KEY_DIM && first_row + t < end_row) k = x[q_at + all_keys + t * stride + c];
    keys[i] = k;
  }
  uint slice = first_column - 4 * quad;
  uint v_at = push.in_at + first_row * stride + 2 * all_keys + head * push.value_dim + slice;
  for (uint i = lane; i < n * kColumns; i += WIDTH) {
    uint t = i / kColumns, c = i % kColumns;
    float v = 0.0;
    if (slice + c < push.value_dim) v = x[v_at + t * stride + c];
    values[i] = v;
  }
  barrier();
}

// Sums the squares of the queries and keys of n rows: kLengthLanes invocations have one.
void sum_squares(uint n) {
  vec2 sum = vec2(0.0);
  uint t = lane / kLengthLanes;
  if (t < n) {
    for (uint c = lane % kLengthLanes; c < KEY_DIM; c += kLengthLanes) {
      vec2 qk = vec2(queries[t * kPitch + c], keys[t * kPitch + c]);
      sum += qk * qk;
    }
  }
  squares[lane] = sum;
  barrier();
}

// Computes the factors of n rows, one by each invocation.
void find_factors(uint first_row, uint n) {
  if (lane < n) {
    uint at = push.rows_at + (first_row + lane) * push.gates_stride +
              push.n_heads * push.value_dim + head;
    uint of_head = push.weights_at + head;
    float dt = softplus_f32(gates[at] + heads[of_head + push.weight_stride]);
    dt = max(dt, push.time_step_low);
    if (push.time_step_high != 0.0) dt = min(dt, push.time_step_high);
    vec4 factor = vec4(exp_f32(dt * heads[of_head]), dt, 0.0, 0.0);
    if (HAS_DELTA_RULE == 1) {
      vec2 sum = vec2(push.length_epsilon);
      for (uint i = 0; i < kLengthLanes; ++i) sum += squares[lane * kLengthLanes + i];
      factor.y = divided(push.beta_factor, 1.0 + exp_f32(-gates[at + push.n_heads]));
      factor.z = divided(1.0, sqrt(sum.x) * sqrt(float(KEY_DIM)));
      factor.w = divided(1.0, sqrt(sum.y));
    } else if (HAS_SKIP == 1) {
      factor.w = heads[of_head + 2 * push.weight_stride];
    }
    factors[lane] = factor;
  }
  barrier();
}

// Sum over the parts of what the workgroup has put into the half.
vec4 recalled(uint half_at) {
  vec4 sum = recalls[half_at + quad];
  for (uint p = 1; p < PARTS; ++p) sum += recalls[half_at + p * kQuads + quad];
  return sum;
}

// Returns what the first of the rows in shared memory recalls.
vec4 first_recall() {
  vec4 sum = vec4(0.0);
  [[unroll]] for (uint i = 0; i < kKeys; ++i) {
    sum = fma(vec4(keys[i * PARTS + part]), states[i], sum);
  }
  recalls[WIDTH + lane] = sum;
  barrier();
  return recalled(WIDTH);
}

// One row, the block's t-th. recall: S^T k; receives that of the next row.
void process(uint row, uint t, uint half_at, inout vec4 recall) {
  vec4 factor = factors[t], v;
  [[unroll]] for (uint j = 0; j < 4; ++j) v[j] = values[t * kColumns + 4 * quad + j];
  vec4 added = HAS_DELTA_RULE == 1
                   ? factor.y * factor.w * (v - factor.x * factor.w * recall)
                   : factor.y * v;
  vec4 sum = vec4(0.0), next = vec4(0.0);
  [[unroll]] for (uint i = 0; i < kKeys; ++i) {
    uint at = t * kPitch + i * PARTS + part;
    states[i] = fma(vec4(keys[at]), added, factor.x * states[i]);
    sum = fma(vec4(queries[at]), states[i], sum);
    if (HAS_DELTA_RULE == 1) next = fma(vec4(keys[at + kPitch]), states[i], next);
  }
  outputs[half_at + lane] = sum;
  if (HAS_DELTA_RULE == 1) recalls[half_at + lane] = next;
  barrier();
  if (HAS_DELTA_RULE == 1) recall = recalled(half_at);
  // The first parts have a column each.
  if (part < n_columns) {
    float out_sum = 0.0;
    for (uint p = 0; p < PARTS; ++p) out_sum += outputs[half_at + p * kQuads + quad][part];
    if (HAS_DELTA_RULE == 1) {
      out_sum *= factor.z;
    } else {
      out_sum = fma(factor.w, v[part], out_sum);
    }
    uint width = push.n_heads * push.value_dim;
    y[push.out_at + row * width + head * push.value_dim + first_column + part] = out_sum;
  }
}

void main() {
  uint sequence = gl_WorkGroupID.y, slices = (push.value_dim + kColumns - 1) / kColumns;
  lane = gl_LocalInvocationIndex;
  quad = lane % kQuads;
  part = lane / kQuads;
  head = gl_WorkGroupID.x / slices;
  first_column = gl_WorkGroupID.x % slices * kColumns + 4 * quad;
  n_columns = first_column < push.value_dim ? min(4, push.value_dim - first_column) : 0;
  uint first_row = run[sequence_at(sequence) + kSequenceFirstRow];
  end_row = first_row + run[sequence_at(sequence) + kSequenceRows];
  read_states(slot_before(sequence));
  vec4 recall = vec4(0.0);
  for (uint row = first_row; row < end_row; row += BLOCK) {
    uint n = min(BLOCK, end_row - row);
    // After its barrier the last row reads nothing that this overwrites.
    read_rows(row, n);
    if (HAS_DELTA_RULE == 1) sum_squares(n);
    find_factors(row, n);
    if (HAS_DELTA_RULE == 1 && row == first_row) recall = first_recall();
    for (uint t = 0; t < n; ++t) process(row + t, t, (t & 1u) * WIDTH, recall);
  }
  write_states(slot_after(sequence));
}
