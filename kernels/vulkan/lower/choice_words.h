// Host-visible buffer for sampling on the device (shaders/choose.comp): parameters written by the
// host and token ids returned by the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/vulkan/shaders/shared.h"

namespace arn::vulkan {

struct ChoiceWords {
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
inline constexpr uint32_t kNoChoice = UINT32_MAX;

// The words as the shader names them.
static_assert(DecodeArgs::kMaxSteps == kChoiceMaxSteps);
static_assert(DecodeArgs::kMaxStopIds == kChoiceMaxStopIds);
static_assert(offsetof(ChoiceWords, step) == sizeof(uint32_t) * kChoiceStep);
static_assert(offsetof(ChoiceWords, first_position) == sizeof(uint32_t) * kChoiceFirstPosition);
static_assert(offsetof(ChoiceWords, n_stop_ids) == sizeof(uint32_t) * kChoiceStopCount);
static_assert(offsetof(ChoiceWords, top_k) == sizeof(uint32_t) * kChoiceTopK);
static_assert(offsetof(ChoiceWords, inverse_temperature) ==
              sizeof(uint32_t) * kChoiceInverseTemperature);
static_assert(offsetof(ChoiceWords, top_p) == sizeof(uint32_t) * kChoiceTopP);
static_assert(offsetof(ChoiceWords, min_p) == sizeof(uint32_t) * kChoiceMinP);
static_assert(offsetof(ChoiceWords, rng) == sizeof(uint32_t) * kChoiceRng);
static_assert(offsetof(ChoiceWords, stop_ids) == sizeof(uint32_t) * kChoiceStopIds);
static_assert(offsetof(ChoiceWords, ids) == sizeof(uint32_t) * kChoiceIds);

}  // namespace arn::vulkan
