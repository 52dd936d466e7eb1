// Appends words to the push constants of a dispatch, after their head.
#pragma once

#include <cstdint>

#include "kernels/vulkan/lower/dispatch.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

class PushWords {
 public:
  explicit PushWords(Dispatch* dispatch) : d_(dispatch) {}
  void Add(uint32_t word) { d_->push[d_->n_push++] = word; }
  void Add(float value) { Add(BitsFromF32(value)); }

 private:
  Dispatch* d_;
};

}  // namespace arn::vulkan
