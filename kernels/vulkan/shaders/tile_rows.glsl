// The rows of a tile of a product of many rows: those that follow each other, or of experts those
// that the expert gl_WorkGroupID.z has in its list. A tile is TILE_M rows and TILE_N outputs
// (kernels/vulkan/product_variants.h).
layout(constant_id = 9) const uint TILE_M = 32;
layout(constant_id = 10) const uint TILE_N = 32;
shared uint tile_rows[TILE_M];

// Called once, by the whole workgroup. How many rows there are for it to look at.
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

// The row of the output that is the tile's i-th.
uint row_of(uint first_row, uint i) { return N_CHOSEN == 0 ? first_row + i : tile_rows[i]; }
