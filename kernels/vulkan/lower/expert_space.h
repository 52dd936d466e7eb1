// Intermediate buffers of kExperts: parts of one slice, as large as the largest step needs. A pair
// is a row and one of its chosen experts.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/vulkan/device/device.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

// Words reserved for the lengths of the lists, which precede them.
constexpr uint32_t ExpertLengthWords(uint32_t n_experts) {
  return static_cast<uint32_t>(AlignUp(n_experts, kSliceAlign / sizeof(uint32_t)));
}

struct ExpertSpace {
  // Per pair, f32: wide holds gate and up, then the expert's output; product holds the weighted
  // input, then activation(gate) * up. list: the pairs of each expert, as written by experts.comp.
  uint64_t wide_bytes = 0, product_bytes = 0, list_bytes = 0;

  uint64_t product_at() const { return AlignUp(wide_bytes, Device::kBindingAlign); }
  uint64_t lists_at() const { return product_at() + AlignUp(product_bytes, Device::kBindingAlign); }
  // Includes padding so that it can start at a multiple of kBindingAlign.
  uint64_t bytes() const {
    return list_bytes == 0 ? 0 : lists_at() + list_bytes + Device::kBindingAlign;
  }
  // Size of the largest binding.
  uint64_t most_bytes() const { return Max(Max(wide_bytes, product_bytes), list_bytes); }
};

// Returns all 0 if the program has no experts.
ExpertSpace ExpertSpaceOf(const Program& program);

}  // namespace arn::vulkan
