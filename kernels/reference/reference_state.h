// State of the reference backend between load and unload. Placed in Region::kConstants.
#pragma once

#include <cstddef>

#include "kernels/contract/backend.h"
#include "kernels/reference/ops.h"

namespace arn::reference {

struct State {
  const Program* program = nullptr;
  Memory memory;
  std::byte* scratch = nullptr;  // for Linear
  float* scores = nullptr;       // [max_context]
  float* normed = nullptr;       // [widest input of kLogits]
  float* low_rank = nullptr;     // [RankStride of Program::max_rank]

  // Returns null for kNoWeight.
  const float* Vector(WeightId id) const {
    return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(program->weights[id].data);
  }
};

void Logits(const State& state, const Step& step, const RunArgs& args);

}  // namespace arn::reference
