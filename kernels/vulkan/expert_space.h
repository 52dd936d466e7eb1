// Where kExperts keeps what it makes on the way: parts of one slice, as large as the largest step
// needs them. A pair is a row and one of the experts that it goes to.
#pragma once

#include <cstdint>

#include "kernels/program.h"
#include "kernels/vulkan/device.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

// Words of the lists' lengths, which come before them.
constexpr uint32_t ExpertLengthWords(uint32_t n_experts) {
  return static_cast<uint32_t>(AlignUp(n_experts, kSliceAlign / sizeof(uint32_t)));
}

struct ExpertSpace {
  // f32 of each pair: gate and up, then the expert's output; the weighted input, then the product
  // of gate and up. And the pairs of each expert, as experts.comp lists them.
  uint64_t wide_bytes = 0, product_bytes = 0, list_bytes = 0;

  uint64_t product_at() const { return AlignUp(wide_bytes, Device::kBindingAlign); }
  uint64_t lists_at() const { return product_at() + AlignUp(product_bytes, Device::kBindingAlign); }
  // With room to begin at a multiple of kBindingAlign.
  uint64_t bytes() const {
    return list_bytes == 0 ? 0 : lists_at() + list_bytes + Device::kBindingAlign;
  }
  // Of the largest binding.
  uint64_t most_bytes() const { return Max(Max(wide_bytes, product_bytes), list_bytes); }
};

// All 0 when the program has no experts.
ExpertSpace ExpertSpaceOf(const Program& program);

}  // namespace arn::vulkan
