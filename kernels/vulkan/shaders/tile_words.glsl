// Operands of integer tiles: words of four columns. Each iteration multiplies kDepth of them, one
// int4 block.
const uint kDepth = 8;

// x_word: word `word` of row `at` of an input tile that starts at first_row. w_word: the same of
// output first + at. Zero outside.
uint x_word(uint first_row, uint rows, uint at, uint word) {
  if (word >= push.x_words || first_row + at >= rows) return 0u;
  uint from = push.extra_at + push.values_at + word;
  return quantized[from + input_row(row_of(first_row, at)) * push.x_words];
}
uint w_word(uint first, uint at, uint word) {
  if (word >= push.x_words || first + at >= push.n_outs) return 0u;
  uint base = weights_from() + (first + at) * push.row_quads * 4;
  if (TYPE == kTypeInt8) return weight_words[base + word];
  uint both = weight_words[base + word / 2];
  return (word & 1u) == 0u ? low_halves(both) : high_halves(both);
}
// Scale of output first + at in the block that starts with `word`.
float tile_scale(uint first, uint at, uint word) {
  return block_scale(min(first + at, push.n_outs - 1), word / kDepth);
}
