// Common to attention_tile.comp and attention_coop.comp: a workgroup has TILE_ROWS rows and up to
// TILE_HEADS of the query heads that share a key and value head, PAIRS pairs of row and query head
// at most. Include after attention.glsl.

// TILE_ROWS * TILE_HEADS <= PAIRS.
layout(constant_id = kAttentionPairsId) const uint PAIRS = 64;
layout(constant_id = kAttentionKeysId) const uint KEYS = 16;
layout(constant_id = kAttentionTileRowsId) const uint TILE_ROWS = 64;
layout(constant_id = kAttentionTileHeadsId) const uint TILE_HEADS = 1;
// 1: each head of a row starts at a multiple of 16 bytes of the binding.
layout(constant_id = kAttentionInQuadsId) const uint IN_QUADS = 0;

layout(set = 0, binding = 1) readonly buffer InQuads { vec4 x_quads[]; };

shared uint firsts[PAIRS], ends[PAIRS];  // keys that a pair sees; none: of another sequence

const uint kHeads = N_HEADS / N_KV_HEADS, kSplits = (kHeads + TILE_HEADS - 1) / TILE_HEADS;

uint lane, kv_head, first_row, end_row, first_head, n_heads, table;
uint first_key, end_key;  // keys that any row of the sequence sees

uint row_of(uint pair) { return first_row + pair / TILE_HEADS; }
uint head_of(uint pair) { return first_head + pair % TILE_HEADS; }
bool has_pair(uint pair) {
  return pair / TILE_HEADS < TILE_ROWS && row_of(pair) < end_row && pair % TILE_HEADS < n_heads;
}
// Start of a pair's query. Pairs that are none read the first one.
uint query_at(uint pair) {
  uint p = has_pair(pair) ? pair : 0;
  return push.in_at + (row_of(p) - ARN_FIRST_ROW) * push.in_stride + head_of(p) * HEAD_DIM;
}
vec4 query(uint at, uint quad) {
  return IN_QUADS == 1 ? x_quads[at / 4 + quad] : row_elements(at, 4 * quad);
}
// Start of a pair's output.
uint out_at(uint pair) {
  uint head = (row_of(pair) - ARN_FIRST_ROW) * N_HEADS + head_of(pair);
  return push.out_at + head * HEAD_DIM;
}

void find_pairs() {
  lane = gl_LocalInvocationIndex;
  uint split = gl_WorkGroupID.x % kSplits * TILE_HEADS;
  kv_head = push.first_kv_head + gl_WorkGroupID.x / kSplits;
  first_head = kv_head * kHeads + split;
  n_heads = min(TILE_HEADS, kHeads - split);
  // Later rows see more keys: they begin first.
  first_row = ARN_FIRST_ROW + (gl_NumWorkGroups.y - 1 - gl_WorkGroupID.y) * TILE_ROWS;
  end_row = min(first_row + TILE_ROWS, ARN_FIRST_ROW + ARN_ROWS);
}

// Finds the keys that the rows see which are of one sequence, or of one part, from `row` on.
// Returns the row after them. whole: the keys that all of them see.
uint find_keys(uint row, out uvec2 whole) {
  uint next = end_row;
  if (IS_SELF == 1) {
    uvec2 part = part_of(row);
    next = min(end_row, part.x + part.y);
  } else {
    uint sequence = row_sequence(row), at = sequence_at(sequence);
    table = table_at(sequence, push.group);
    next = min(end_row, run[at + kSequenceFirstRow] + run[at + kSequenceRows]);
  }
  uvec2 of_first = seen_by(row, table), of_last = seen_by(next - 1, table);
  first_key = of_first.x;
  end_key = of_last.y;
  whole = uvec2(of_last.x, of_first.y);
  for (uint pair = lane; pair < PAIRS; pair += WIDTH) {
    bool is_here = has_pair(pair) && row_of(pair) >= row && row_of(pair) < next;
    uvec2 seen = is_here ? seen_by(row_of(pair), table) : uvec2(0, 0);
    firsts[pair] = seen.x;
    ends[pair] = seen.y;
  }
  return next;
}
