// Shared by all matmuls: push constants, and the conversion of a sum to an output.
layout(set = 0, binding = 1) readonly buffer In { float x[]; };
layout(set = 0, binding = 1) readonly buffer InQuads { vec4 x_quads[]; };
#ifdef ARN_ENDS  // workgroups read the outputs of others
layout(set = 0, binding = 2) coherent buffer Out { float y[]; };
#else
layout(set = 0, binding = 2) buffer Out { float y[]; };
#endif
layout(set = 0, binding = 5) readonly buffer Quantized { uint quantized[]; };
layout(set = 0, binding = 5) readonly buffer QuantizedQuads { uvec4 quantized_quads[]; };
layout(push_constant) uniform Push { MatmulPush push; };

layout(constant_id = kMatmulTypeId) const uint TYPE = 0;
layout(constant_id = kMatmulAccumulateId) const uint ACCUMULATE = 0;
layout(constant_id = kMatmulIsLogitsId) const uint IS_LOGITS = 0;
// kExperts (kernels/vulkan/lower/lower_experts.cc): experts per row; an output row is a (row, expert)
// pair. 0: a single matrix.
layout(constant_id = kMatmulChosenId) const uint N_CHOSEN = 0;
// The activation that follows (kAct, kGatedAct): kActivatesOutputs, kActivatesPairs; 0: none.
layout(constant_id = kMatmulActivatesId) const uint ACTIVATES = 0;
layout(constant_id = kMatmulActivationId) const uint ACTIVATION = 0;
// Output rows per input row.
layout(constant_id = kMatmulRowsAnInputId) const uint ROWS_AN_INPUT = 1;

// The workgroup's expert, relative to the bound experts.
uint expert = 0;

// Routing words: the output of kRoute (few rows), or the lists of experts.comp (many rows). Placed
// in a binding that matmuls with these weights do not otherwise use.
#ifdef ARN_INTEGERS
layout(set = 0, binding = 1) readonly buffer TopK { uint topk[]; };
uint routing_word(uint i) { return topk[push.in_at + i]; }
#else
uint routing_word(uint i) { return quantized[push.extra_at + i]; }
#endif

// Selects the expert of an output row. Returns false if its weights are not bound.
bool choose_expert(uint m) {
  const uint n = max(N_CHOSEN, 1);
  uint id = uint(uintBitsToFloat(routing_word(m / n * 2 * n + m % n)));
  expert = id - push.first_expert;
  return expert < push.n_experts;
}
// Number of output rows of the expert, and the i-th of them.
uint list_length() { return routing_word(push.first_expert + expert); }
uint listed_row(uint i) {
  return routing_word(push.lists_at + (push.first_expert + expert) * push.list_words + i);
}

uint input_row(uint m) { return m / ROWS_AN_INPUT; }
uint weights_from() { return push.weights_at + expert * push.expert_words; }
// Start of the metadata of output n of the slice.
uint heads_from() { return push.rows_at + expert * push.expert_words; }
uint row_head(uint n) { return heads_from() + (push.first_out + n) * kRowHeadWords; }
// Scale of an int4 block.
float block_scale(uint n, uint block) {
  return bf16_at(heads_from() + push.blocks_at + (push.first_out + n) * push.block_words, block);
}

// Writes output n of row m. `sum`: the dot product without bias.
void put(uint m, uint n, float sum) {
  sum += row_bias(row_head(n));
  if (IS_LOGITS == 1) sum = softcapped(sum * push.factor, push.softcap);
  uint at = push.out_at + m * push.out_stride + push.first_out + n;
  y[at] = ACCUMULATE == 1 ? y[at] + sum : sum;
}

// Number of outputs written. With gate/up pairs, output n is the gate of output n + n_written().
uint n_written() { return ACTIVATES == kActivatesPairs ? push.n_outs / 2 : push.n_outs; }

// Writes output n of row m, with its activation. up_sum: with gate/up pairs, the up's dot product.
void put_activated(uint m, uint n, float sum, float up_sum) {
  if (ACTIVATES == 0) {
    put(m, n, sum);
    return;
  }
  float value = sum + row_bias(row_head(n)), up = 1.0;
  if (ACTIVATES == kActivatesPairs) up = up_sum + row_bias(row_head(n + n_written()));
  y[push.out_at + m * push.out_stride + n] = gated(ACTIVATION, value, up, push.limit);
}

int x_zero(uint m) { return int(quantized[push.extra_at + 2 * input_row(m)]); }
float x_scale(uint m) {
  return uintBitsToFloat(quantized[push.extra_at + 2 * input_row(m) + 1]);
}

#ifdef ARN_INTEGERS
#include "dot.glsl"

// Scales an integer matmul's sum: of values (int8), or of blocks times their scales (int4).
float scaled(uint m, uint n, float sum) {
  if (TYPE == kTypeInt8) return sum * row_scale(row_head(n)) * x_scale(m);
  return (sum - float(x_zero(m)) * uintBitsToFloat(row_words[row_head(n) + 2])) * x_scale(m);
}
// int8: contribution of the zero point.
int zero_part(uint m, uint n) { return x_zero(m) * int(row_words[row_head(n) + 2]); }
#endif
