// Host-visible buffer for sampling on the device (shaders/choose.comp): parameters written by the
// host and token ids returned by the device.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"

namespace arn::vulkan {

struct ChoiceWords {
  static constexpr uint32_t kHead = 8;
  uint32_t step = 0;            // next step to sample; incremented by the device
  uint32_t first_position = 0;  // position of step 0's token
  uint32_t n_stop_ids = 0;
  uint32_t top_k = 0;                // 0: off
  float inverse_temperature = 0.0f;  // 0: greedy
  uint32_t top_p = 0;                // as a fraction of 2^32; 0: off
  float min_p = 0.0f;
  uint32_t unused = 0;
  uint32_t rng[DecodeArgs::kMaxSteps] = {};
  uint32_t stop_ids[DecodeArgs::kMaxStopIds] = {};
  // kNoChoice until sampled; kIsStopId is set for a stop token.
  uint32_t ids[DecodeArgs::kMaxSteps] = {};
};
static_assert(sizeof(ChoiceWords) ==
              (ChoiceWords::kHead + 2 * DecodeArgs::kMaxSteps + DecodeArgs::kMaxStopIds) *
                  sizeof(uint32_t));
static_assert(DecodeArgs::kMaxSteps == 64 && DecodeArgs::kMaxStopIds == 16);  // as in the shader

inline constexpr uint32_t kIsStopId = 1u << 31, kNoChoice = UINT32_MAX;

}  // namespace arn::vulkan
