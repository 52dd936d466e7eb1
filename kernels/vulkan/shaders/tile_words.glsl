// Operands of integer tiles in shared memory: words of four columns, as quads of 16 bytes. A stage
// is BLOCKS blocks of 32 columns, each with one scale per output for int4. The next stage's loads
// are issued before the current stage is multiplied.
layout(constant_id = kMatmulBlocksId) const uint BLOCKS = 1;
const uint kBlockWords = 8;
// Quads of a row in shared memory, and from one row to the next: odd, so that rows start in
// different banks.
const uint STAGE_QUADS = 2 * BLOCKS, PITCH = STAGE_QUADS + 1;
#ifdef ARN_COOP
// Words, because cooperative matrices may start inside a quad.
shared uint tiles[(TILE_M + TILE_N) * PITCH * 4];
#define ARN_STORE_QUAD(AT, QUAD)  \
  {                               \
    const uvec4 quad_ = QUAD;     \
    const uint at_ = 4 * (AT);    \
    tiles[at_] = quad_.x;         \
    tiles[at_ + 1] = quad_.y;     \
    tiles[at_ + 2] = quad_.z;     \
    tiles[at_ + 3] = quad_.w;     \
  }
#else
shared uvec4 tiles[(TILE_M + TILE_N) * PITCH];
#define ARN_STORE_QUAD(AT, QUAD) tiles[AT] = QUAD;
#endif
// Where the rows of w start in `tiles`; those of x start at 0.
const uint W_TILE = TILE_M * PITCH;

// Quads of a weight row per stage: of int4, one has the 32 columns of a block.
const uint W_QUADS = TYPE == kTypeInt4 ? BLOCKS : STAGE_QUADS;
const uint X_LOADS = (TILE_M * STAGE_QUADS + WIDTH - 1) / WIDTH;
const uint W_LOADS = (TILE_N * W_QUADS + WIDTH - 1) / WIDTH;
uvec4 next_x[X_LOADS], next_w[W_LOADS];

// Loads the stage from `block` on. Rows and outputs after the last repeat it, since what they add
// up to is not stored; columns after the last are zero in x.
void fetch(uint first, uint first_row, uint rows, uint block) {
  uint x_from = (push.extra_at + push.values_at) / 4, n_quads = push.x_words / 4;
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH, quad = 2 * block + at % STAGE_QUADS;
    uint row = input_row(row_of(first_row, min(at / STAGE_QUADS, rows - 1 - first_row)));
    next_x[i] = quad < n_quads && at < TILE_M * STAGE_QUADS
                    ? quantized_quads[x_from + row * n_quads + quad]
                    : uvec4(0);
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    uint quad = (TYPE == kTypeInt4 ? block : 2 * block) + at % W_QUADS;
    uint row = known_out(first, at / W_QUADS);
    next_w[i] = weight_quads[weights_from() / 4 + row * push.row_quads +
                             min(quad, push.row_quads - 1)];
  }
}

// Writes what fetch() has loaded to shared memory.
void store_stage() {
  [[unroll]] for (uint i = 0; i < X_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_M * STAGE_QUADS) continue;
    ARN_STORE_QUAD(at / STAGE_QUADS * PITCH + at % STAGE_QUADS, next_x[i])
  }
  [[unroll]] for (uint i = 0; i < W_LOADS; ++i) {
    uint at = gl_LocalInvocationIndex + i * WIDTH;
    if (at >= TILE_N * W_QUADS) continue;
    uvec4 w = next_w[i];
    uint to = W_TILE + at / W_QUADS * PITCH + at % W_QUADS * (STAGE_QUADS / W_QUADS);
    if (TYPE == kTypeInt4) {
      ARN_STORE_QUAD(to, halves(w.xy))
      ARN_STORE_QUAD(to + 1, halves(w.zw))
    } else {
      ARN_STORE_QUAD(to, w)
    }
  }
}

// Scale of known_out(first, at) in a block; after the last block, that of the last.
float tile_scale(uint first, uint at, uint block) {
  return block_scale(known_out(first, at), min(block, push.x_words / kBlockWords - 1));
}
