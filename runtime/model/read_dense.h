// Reads dense layers over pooled rows, and of projectors.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Reads layer `index`, whose input has `width` columns.
Status ReadDense(const fbs::Dense& dense, uint32_t index, uint32_t width, const ModelSpec& spec,
                 DenseSpec* out, Diag* diag);

}  // namespace arn
