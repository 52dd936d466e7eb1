// Rows of a tile in matmuls of many rows: consecutive rows, or with experts the rows in the list of
// expert gl_WorkGroupID.z. A tile is TILE_M rows by TILE_N outputs
// (kernels/vulkan/lower/matmul_variants.h).
layout(constant_id = kMatmulTileMId) const uint TILE_M = 32;
layout(constant_id = kMatmulTileNId) const uint TILE_N = 32;
shared uint tile_rows[TILE_M];

// Must be called once, by the whole workgroup. Returns the number of rows to process.
uint find_rows() {
  uint n = ARN_ROWS;
  if (N_CHOSEN != 0) {
    expert = gl_WorkGroupID.z;
    n = list_length();
    for (uint i = gl_LocalInvocationIndex; i < TILE_M; i += WIDTH) {
      uint at = gl_WorkGroupID.y * TILE_M + i;
      if (at < n) tile_rows[i] = listed_row(at);
    }
    barrier();
  }
  return n;
}

// Returns the output row of the tile's row i.
uint row_of(uint first_row, uint i) { return N_CHOSEN == 0 ? first_row + i : tile_rows[i]; }
