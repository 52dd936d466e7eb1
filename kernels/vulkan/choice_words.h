// The buffer through which tokens are chosen (shaders/choose.comp): what the host asks for, and the
// ids that the device answers with. The host sees it.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace arn::vulkan {

struct ChoiceWords {
  static constexpr uint32_t kHead = 8;
  uint32_t step = 0;            // the next one to choose; counted by the device
  uint32_t first_position = 0;  // of the token of step 0
  uint32_t n_ends = 0;
  uint32_t top_k = 0;                // 0: off
  float inverse_temperature = 0.0f;  // 0: the best one
  uint32_t top_p = 0;                // in parts of 2^32; 0: off
  float min_p = 0.0f;
  uint32_t unused = 0;
  uint32_t draws[DecodeArgs::kMaxSteps] = {};
  uint32_t ends[DecodeArgs::kMaxEnds] = {};
  // kNoChoice until it is known; with kIsEnd when it is an end.
  uint32_t ids[DecodeArgs::kMaxSteps] = {};
};
static_assert(sizeof(ChoiceWords) ==
              (ChoiceWords::kHead + 2 * DecodeArgs::kMaxSteps + DecodeArgs::kMaxEnds) *
                  sizeof(uint32_t));
static_assert(DecodeArgs::kMaxSteps == 64 && DecodeArgs::kMaxEnds == 16);  // as in the shader

inline constexpr uint32_t kIsEnd = 1u << 31, kNoChoice = UINT32_MAX;

}  // namespace arn::vulkan
