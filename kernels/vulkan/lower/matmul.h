// A matmul with one matrix, or with one of several matrices of the same shape.
#pragma once

#include "kernels/vulkan/lower/lower.h"

namespace arn::vulkan {

struct Lowering::Matmul {
  const Step* step = nullptr;
  WeightId weight = kNoWeight;
  Place in, out;
  uint64_t max_rows = 0;       // of the input, in any run
  uint32_t row_factor = 1;     // rows per row of a run
  uint32_t rows_an_input = 1;  // output rows per input row
  bool accumulate = false;
  bool is_quantized = false;  // the dispatch that wrote the input also quantised it
  bool is_logits = false;
  float factor = 1.0f, softcap = 0.0f;             // of logits
  uint32_t first_row = 0, most_rows = UINT32_MAX;  // for logits
};

bool IsInteger(const Weight& weight);

template <typename Push>
void Lowering::Quantize(Dispatch* d, Push* push, uint64_t matmul_rows) {
  SetQuantized(d->modes, workspace_.quantized, matmul_rows);
  Bind(d, 5, PlaceOf(workspace_.quantized));
  d->constants[kRowQuantizesId] = 1;
  push->values_at = QuantizedHeadWords(matmul_rows);
  push->row_words = QuantizedWords(push->n);
}

}  // namespace arn::vulkan
