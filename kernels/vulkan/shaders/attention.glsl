// Common to the shaders of kAttention and kSelfAttention: inputs, outputs, and the keys a row sees.
// Include after common.glsl, math.glsl and kv.glsl.
layout(constant_id = kAttentionHeadsId) const uint N_HEADS = 1;
layout(constant_id = kAttentionKvHeadsId) const uint N_KV_HEADS = 1;
layout(constant_id = kAttentionIsCrossId) const uint IS_CROSS = 0;
// 1: keys and values are rows of the input.
layout(constant_id = kAttentionIsSelfId) const uint IS_SELF = 0;
// 1: of kSelfAttention, rows see those of their part alone; of kAttention, rows may see further
// than their own position.
layout(constant_id = kAttentionHasPartsId) const uint HAS_PARTS = 0;
// 1: of kSelfAttention, rows see none after themselves.
layout(constant_id = kAttentionIsCausalId) const uint IS_CAUSAL = 0;
layout(constant_id = kAttentionHasSinksId) const uint HAS_SINKS = 0;
layout(constant_id = kAttentionHasBiasId) const uint HAS_BIAS = 0;

layout(set = 0, binding = 1) readonly buffer In { float x[]; };
#ifdef ARN_ENDS  // workgroups read the outputs of others
layout(set = 0, binding = 2) coherent buffer Out { float y[]; };
#else
layout(set = 0, binding = 2) buffer Out { float y[]; };
#endif
layout(set = 0, binding = 3) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 4) readonly buffer RelativePositionBias {
  float relative_position_bias[];
};

// Elements [i, i + 4) of a head that starts at `from`, zero-padded.
vec4 row_elements(uint from, uint i) {
  vec4 e = vec4(0.0);
  for (uint j = 0; j < 4; ++j) {
    if (i + j < HEAD_DIM) e[j] = x[from + i + j];
  }
  return e;
}

uint position_of(uint row) { return IS_SELF == 1 ? row : row_position(row); }

float bias_of(uint position, uint key, uint head) {
  int origin = IS_SELF == 1 ? int(push.n_distances - 1) / 2 : 0;
  int row = clamp(origin + int(position) - int(key), 0, int(push.n_distances) - 1);
  return relative_position_bias[push.rows_at + uint(row) * push.bias_stride + head];
}

// kSelfAttention: the first of the rows that see each other, and how many they are.
uvec2 part_of(uint row) {
  uint at = HAS_PARTS == 1
                ? run[kRunParts] + run[kRunRows + row * kRowWords + kRowPart] * kPartWords
                : sequence_at(row_sequence(row)) + kSequenceFirstRow;
  return uvec2(run[at + kPartFirstRow], run[at + kPartRows]);
}

uvec2 seen_in_part(uint row) {
  uvec2 part = part_of(row);
  uint position = row - part.x, first = 0, end = IS_CAUSAL == 1 ? position + 1 : part.y;
  if (push.window != 0) {
    if (position >= push.window) first = position - push.window + 1;
    end = min(end, position + push.window);
  }
  return uvec2(part.x + first, part.x + end);
}

// The keys that a row sees: [x, y). Both grow with the row's position. table: of its sequence.
uvec2 seen_by(uint row, uint table) {
  if (IS_SELF == 1) return seen_in_part(row);
  if (IS_CROSS == 1) return uvec2(0, run[sequence_at(row_sequence(row)) + kSequenceEncoderRows]);
  uint position = row_position(row), first = 0;
  if (push.window != 0 && position >= push.window) first = position - push.window + 1;
  if (push.chunk != 0) first = max(first, position - position % push.chunk);
  uint end = HAS_PARTS == 1 ? run[kRunRows + row * kRowWords + kRowEnd] : 0;
  return uvec2(max(first, run[table + kGroupFirstPage] * PAGE_TOKENS),
               end == 0 ? position + 1 : end);
}
