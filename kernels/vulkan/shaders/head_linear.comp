#version 450
#extension GL_GOOGLE_include_directive : require
// kHeadLinear: each head has a matrix of its own. A workgroup multiplies N_ROW rows of a head,
// which it keeps in shared memory (quantised there for integer weights), by the matrix's rows for
// WIDTH / PARTS * N_OUT outputs: PARTS invocations share an output's columns, 16 bytes of a weight
// row at a time. It also copies what precedes the head's outputs. Workgroups after the last head
// copy the tails.
#include "common.glsl"
#include "math.glsl"
#include "weights.glsl"
#include "dot.glsl"
#include "quantizer.glsl"

layout(constant_id = kHeadTypeId) const uint TYPE = 0;
layout(constant_id = kHeadRowsId) const uint N_ROW = 1;  // 2^n, at most WIDTH
layout(constant_id = kHeadOutsId) const uint N_OUT = 2;
layout(constant_id = kHeadPartsId) const uint PARTS = 1;  // 2^n
// 16 bytes of a row in shared memory: four elements, or 16 quantised ones.
layout(constant_id = kHeadQuadsId) const uint ROW_QUADS = 1;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 2) buffer Out { float y[]; };
layout(set = 0, binding = 5) readonly buffer Tail { float tail[]; };
layout(set = 0, binding = 6) readonly buffer NextTail { float next_tail[]; };
layout(push_constant) uniform Push { HeadLinearPush push; };

const bool kIsInteger = TYPE == kTypeInt8 || TYPE == kTypeInt4;
const uint kSums = N_ROW * N_OUT, kSlots = WIDTH / PARTS, kRowLanes = WIDTH / N_ROW;
shared uvec4 row_quads[N_ROW * ROW_QUADS];
shared float lows[kIsInteger ? WIDTH : 1], highs[kIsInteger ? WIDTH : 1];
shared float row_scales[N_ROW];
shared int row_zeros[N_ROW];
shared uint part_sums[PARTS == 1 ? 1 : kSums * WIDTH];

// Elements [c, c + 4) of n elements from `from` on, zero-padded.
vec4 x_at(uint from, uint c, uint n) {
  vec4 e = vec4(0.0);
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    if (c + j < n) e[j] = x[from + c + j];
  }
  return e;
}

// Loads the workgroup's rows of a head; those past the last one are zeros. kRowLanes invocations
// share a row.
void load_rows(uint head, uint first_row, uint n_rows) {
  const uint lane = gl_LocalInvocationIndex, row = lane / kRowLanes, part = lane % kRowLanes;
  const uint n = row < n_rows ? push.cols : 0;
  const uint from =
      push.in_at + (first_row + row) * push.in_stride + head * push.in_head + push.first;
  if (!kIsInteger) {
    for (uint q = part; q < ROW_QUADS; q += kRowLanes) {
      row_quads[row * ROW_QUADS + q] = floatBitsToUint(x_at(from, 4 * q, n));
    }
    return;
  }
  float low = 0.0, high = 0.0;
  for (uint c = 4 * part; c < n; c += 4 * kRowLanes) {
    vec4 value = x_at(from, c, n);
    low = min(low, min(min(value.x, value.y), min(value.z, value.w)));
    high = max(high, max(max(value.x, value.y), max(value.z, value.w)));
  }
  lows[lane] = low;
  highs[lane] = high;
  for (uint other = kRowLanes / 2; other > 0; other /= 2) {
    barrier();
    if (part < other) {
      lows[lane] = min(lows[lane], lows[lane + other]);
      highs[lane] = max(highs[lane], highs[lane + other]);
    }
  }
  barrier();
  Quantizer quantizer = quantizer_of(lows[row * kRowLanes], highs[row * kRowLanes]);
  if (part == 0) {
    row_scales[row] = quantizer.scale;
    row_zeros[row] = int(quantizer.zero_point);
  }
  for (uint q = part; q < ROW_QUADS; q += kRowLanes) {
    uvec4 words;
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      uint c = 16 * q + 4 * j;
      words[j] = quantized_word(quantizer, x_at(from, c, n), c < n ? n - c : 0);
    }
    row_quads[row * ROW_QUADS + q] = words;
  }
}

// Adds the sums of an output's invocations up. The first one has the results.
void add_parts(inout uint sums[kSums]) {
  if (PARTS == 1) return;
  const uint lane = gl_LocalInvocationIndex, part = lane % PARTS;
  [[unroll]] for (uint i = 0; i < kSums; ++i) part_sums[i * WIDTH + lane] = sums[i];
  for (uint other = PARTS / 2; other > 0; other /= 2) {
    barrier();
    [[unroll]] for (uint i = 0; i < kSums && part < other; ++i) {
      const uint at = i * WIDTH + lane;
      uint a = part_sums[at], b = part_sums[at + other];
      part_sums[at] =
          TYPE == kTypeInt8 ? a + b : floatBitsToUint(uintBitsToFloat(a) + uintBitsToFloat(b));
    }
  }
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = part_sums[i * WIDTH + lane];
}

void multiply(uint head, uint first_row, uint n_rows) {
  const uint lane = gl_LocalInvocationIndex, part = lane % PARTS;
  const uint first_out = gl_WorkGroupID.x * kSlots * N_OUT + lane / PARTS;
  const uint weights_from = push.weights_at + head * push.matrix_words;
  const uint heads_from = push.rows_at + head * push.matrix_words;
  float sums[kSums];
  int int_sums[kSums];
  [[unroll]] for (uint i = 0; i < kSums; ++i) {
    sums[i] = 0.0;
    int_sums[i] = 0;
  }
  for (uint q = part; q < push.row_quads; q += PARTS) {
    [[unroll]] for (uint n = 0; n < N_OUT; ++n) {
      const uint out_row = min(first_out + n * kSlots, push.n_outs - 1);
      const uvec4 w = weight_quads[weights_from / 4 + out_row * push.row_quads + q];
      uvec4 low, high;
      float scale = 0.0;
      if (TYPE == kTypeInt4) {
        low = halves(w.xy);
        high = halves(w.zw);
        scale = bf16_at(heads_from + push.blocks_at + out_row * push.block_words, q);
      } else if (TYPE == kTypeF16 || TYPE == kTypeBf16) {
        low = floatBitsToUint(vec4(pair_of(TYPE, w.x), pair_of(TYPE, w.y)));
        high = floatBitsToUint(vec4(pair_of(TYPE, w.z), pair_of(TYPE, w.w)));
      } else {
        low = w;
      }
      [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
        const uint i = m * N_OUT + n, at = m * ROW_QUADS;
        if (TYPE == kTypeInt8) {
          int_sums[i] += dot16(row_quads[at + q], low);
        } else if (TYPE == kTypeInt4) {
          int sum = dot16(row_quads[at + 2 * q], low) + dot16(row_quads[at + 2 * q + 1], high);
          sums[i] += scale * float(sum);
        } else if (TYPE == kTypeF32) {
          sums[i] += dot(uintBitsToFloat(row_quads[at + q]), uintBitsToFloat(low));
        } else {
          sums[i] += dot(uintBitsToFloat(row_quads[at + 2 * q]), uintBitsToFloat(low));
          sums[i] += dot(uintBitsToFloat(row_quads[at + 2 * q + 1]), uintBitsToFloat(high));
        }
      }
    }
  }
  uint words[kSums];
  [[unroll]] for (uint i = 0; i < kSums; ++i) {
    words[i] = TYPE == kTypeInt8 ? uint(int_sums[i]) : floatBitsToUint(sums[i]);
  }
  add_parts(words);
  const uint to = push.out_at + (push.first_head + head) * push.out_head + push.n_copied;
  [[unroll]] for (uint m = 0; m < N_ROW; ++m) {
    [[unroll]] for (uint n = 0; n < N_OUT; ++n) {
      const uint out_row = first_out + n * kSlots, word = words[m * N_OUT + n];
      if (part != 0 || m >= n_rows || out_row >= push.n_outs) continue;
      const uint at = heads_from + out_row * kRowHeadWords;
      // As scaled() of linear.glsl.
      float sum;
      if (TYPE == kTypeInt8) {
        int zero_part = row_zeros[m] * int(row_words[at + 2]);
        sum = float(int(word) - zero_part) * row_scale(at) * row_scales[m];
      } else {
        sum = uintBitsToFloat(word);
        if (TYPE == kTypeInt4) {
          sum = (sum - float(row_zeros[m]) * uintBitsToFloat(row_words[at + 2])) * row_scales[m];
        }
      }
      y[to + (first_row + m) * push.out_stride + out_row] = sum + row_bias(at);
    }
  }
}

void main() {
  const uint head = gl_WorkGroupID.z, first_row = gl_WorkGroupID.y * N_ROW;
  const uint n_rows = min(N_ROW, ARN_ROWS - first_row), all = gl_NumWorkGroups.x * WIDTH;
  if (head == push.n_heads) {
    for (uint m = first_row; m < first_row + n_rows; ++m) {
      const uint to = push.out_at + m * push.out_stride + push.tails_at;
      for (uint i = gl_GlobalInvocationID.x; i < push.tail_width; i += all) {
        y[to + i] = tail[push.extra_at + m * push.tail_width + i];
      }
      for (uint i = gl_GlobalInvocationID.x; i < push.next_tail_width; i += all) {
        y[to + push.tail_width + i] = next_tail[push.next_tail_at + m * push.next_tail_width + i];
      }
    }
    return;
  }
  const uint place = push.first_head + head;
  for (uint m = first_row; m < first_row + n_rows; ++m) {
    for (uint i = gl_GlobalInvocationID.x; i < push.n_copied; i += all) {
      y[push.out_at + m * push.out_stride + place * push.out_head + i] =
          x[push.in_at + m * push.in_stride + place * push.in_head + i];
    }
  }
  load_rows(place, first_row, n_rows);
  barrier();
  multiply(head, first_row, n_rows);
}
