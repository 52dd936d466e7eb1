// Rows of a tile in matmuls of many rows: consecutive rows, or with experts the rows in the list of
// expert gl_WorkGroupID.z. A tile is TILE_M rows by TILE_N outputs
// (kernels/vulkan/lower/matmul_variants.h).
layout(constant_id = kMatmulTileMId) const uint TILE_M = 32;
layout(constant_id = kMatmulTileNId) const uint TILE_N = 32;
// 1: workgroups that begin one after another have the rows of the same outputs, one tile after
// another; 0: the outputs of the same rows. What they share is read from memory once.
layout(constant_id = kMatmulRowsFirstId) const uint ROWS_FIRST = 0;
shared uint tile_rows[TILE_M];

// The workgroup's tile: of outputs, and of rows.
uvec2 tile_of_group() {
  uint i = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return ROWS_FIRST == 1 ? uvec2(i / gl_NumWorkGroups.y, i % gl_NumWorkGroups.y)
                         : gl_WorkGroupID.xy;
}

// With gate/up pairs, PAIR_RUN rows of the tile's weights are gates, the next PAIR_RUN their ups.
#ifdef ARN_COOP
const uint PAIR_RUN = COOP_N / 2;
#else
const uint PAIR_RUN = TILE_N / 2;
#endif
// Outputs that a tile writes, and the first of the workgroup's.
const uint TILE_OUTS = ACTIVATES == kActivatesPairs ? TILE_N / 2 : TILE_N;
uint first_out() { return tile_of_group().x * TILE_OUTS; }
// The output of row `at` of the tile's weights; after the last one, that.
uint known_out(uint first, uint at) {
  if (ACTIVATES != kActivatesPairs) return min(first + at, push.n_outs - 1);
  uint gate = first + at / (2 * PAIR_RUN) * PAIR_RUN + at % PAIR_RUN;
  return min(gate, n_written() - 1) + at / PAIR_RUN % 2 * n_written();
}

// Must be called once, by the whole workgroup. Returns the number of rows to process.
uint find_rows() {
  uint n = ARN_ROWS;
  if (N_CHOSEN != 0) {
    expert = gl_WorkGroupID.z;
    n = list_length();
    for (uint i = gl_LocalInvocationIndex; i < TILE_M; i += WIDTH) {
      uint at = tile_of_group().y * TILE_M + i;
      if (at < n) tile_rows[i] = listed_row(at);
    }
    barrier();
  }
  return n;
}

// Returns the output row of the tile's row i.
uint row_of(uint first_row, uint i) { return N_CHOSEN == 0 ? first_row + i : tile_rows[i]; }
