// Distribution of a tile over the invocations: LANES_N along the outputs, LANES_M along the rows.
// Each computes PER_M by PER_N elements, strided by LANES_M and LANES_N.
layout(constant_id = kMatmulLanesNId) const uint LANES_N = 8;
const uint LANES_M = WIDTH / LANES_N;
const uint PER_M = TILE_M / LANES_M, PER_N = TILE_N / LANES_N;
// Outputs that an invocation writes. With gate/up pairs, half of PER_N, which is even.
const uint PER_OUT = ACTIVATES == kActivatesPairs ? PER_N / 2 : PER_N;
