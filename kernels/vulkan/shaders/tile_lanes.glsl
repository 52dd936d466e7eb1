// How the invocations of a workgroup share a tile: LANES_N of them its outputs, the rest its rows.
// Each has PER_M by PER_N, which lie as far apart as there are invocations beside each other.
layout(constant_id = 11) const uint LANES_N = 8;
const uint LANES_M = WIDTH / LANES_N;
const uint PER_M = TILE_M / LANES_M, PER_N = TILE_N / LANES_N;
