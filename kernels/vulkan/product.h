// A product with one matrix, or one of several that are alike.
#pragma once

#include "kernels/vulkan/lower.h"

namespace arn::vulkan {

struct Lowering::Product {
  const Step* step = nullptr;
  WeightId weight = kNoWeight;
  Place in, out;
  uint64_t max_rows = 0;       // of the input, in any run
  uint32_t row_factor = 1;     // rows for each row of a run
  uint32_t rows_an_input = 1;  // rows of the output that share one of the input
  bool accumulate = false;
  bool is_logits = false;
  uint32_t first_row = 0, most_rows = UINT32_MAX;  // of logits
};

bool IsInteger(const Weight& weight);

}  // namespace arn::vulkan
