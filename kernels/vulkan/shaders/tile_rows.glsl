// The rows of a tile of a product of many rows: those that follow each other, or of experts those
// that the expert gl_WorkGroupID.z has in its list.
const uint kTile = 32;
shared uint tile_rows[kTile];

// Called once, by the whole workgroup. How many rows there are for it to look at.
uint find_rows() {
  uint n = ARN_ROWS;
  if (N_CHOSEN != 0) {
    expert = gl_WorkGroupID.z;
    n = list_length();
    uint lane = gl_LocalInvocationIndex, i = gl_WorkGroupID.y * kTile + lane;
    if (lane < kTile && i < n) tile_rows[lane] = listed_row(i);
    barrier();
  }
  return n;
}

// The row of the output that is the tile's i-th.
uint row_of(uint first_row, uint i) { return N_CHOSEN == 0 ? first_row + i : tile_rows[i]; }
